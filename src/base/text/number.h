// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace tw {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The number that makes up the whole text; nothing for any other text, and beyond the range of Number.
/// Infinities and NaN are numbers for a floating-point type.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace tw
