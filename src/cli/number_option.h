// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/number.h"

namespace tw {

/// For CLI::Option::check: a number in [least, most]. Not-a-number is none, unlike in CLI::Range.
inline CLI::Validator number_within(double least, double most) {
  const auto judge = [least, most](const std::string& text) -> std::string {
    const auto number = parse_number<double>(text);
    if (number && *number >= least && *number <= most) return "";
    return fmt::format("{}: expected a number from {:.15g} to {:.15g}", text, least, most);
  };
  return {judge, ""};
}

}  // namespace tw
