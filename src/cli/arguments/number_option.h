// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/text/fields.h"

namespace tw::cli {

/// For CLI::Option::check: a number in [least, most]. Not-a-number is none, unlike in CLI::Range.
inline CLI::Validator number_within(double least, double most) {
  const auto judge = [least, most](const std::string& text) -> std::string {
    const NumberBounds bounds{.low = least, .high = most};
    if (number_in<double>(text, bounds)) return "";
    return text + ": expected " + number_text(bounds);
  };
  return {judge, ""};
}

}  // namespace tw::cli
