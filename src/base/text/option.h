// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tw {

/// An option as its user writes it, for messages: "--listen :7000" at a terminal, "listen=:7000" in a
/// program.
struct OptionName {
  OptionName(std::string written, char sign = ' ')  // NOLINT(google-explicit-constructor)
      : name(std::move(written)), before_value(sign) {}

  OptionName(const char* written) : name(written) {}  // NOLINT(google-explicit-constructor)

  std::string with(std::string_view value) const;

  std::string name;  ///< "--listen" or "listen"
  char before_value = ' ';
};

/// The complaint about an empty text. meaning: of the option, as its help has it.
std::string found_nothing(const OptionName& option, std::string_view meaning);

/// Both ends are included.
struct Bounds {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

/// The error names the option, the value, what was expected, and, for a number out of bounds, the nearest one
/// within them.
Result<std::uint64_t> parse_count(const OptionName& option, const std::string& text, Bounds bounds);

}  // namespace tw
