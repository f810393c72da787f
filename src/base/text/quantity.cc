// SPDX-License-Identifier: Apache-2.0
#include "base/text/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/text/number.h"

namespace tw {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 7> kSizeUnits{{{"GiB", 1ULL << 30},
                                                                                {"GB", 1'000'000'000},
                                                                                {"MiB", 1ULL << 20},
                                                                                {"MB", 1'000'000},
                                                                                {"KiB", 1ULL << 10},
                                                                                {"kB", 1'000},
                                                                                {"B", 1}}};
constexpr std::uint64_t kLargest = 1ULL << 40;

constexpr int kMostDecimals = 15;

std::string grouped_digits(std::string digits) {
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace

std::optional<std::uint64_t> parse_size(const std::string& text) {
  std::uint64_t unit = 1;
  std::string_view digits = text;
  for (const auto& [name, bytes] : kSizeUnits) {
    if (!digits.ends_with(name)) continue;
    unit = bytes;
    digits.remove_suffix(name.size());
    break;
  }
  const auto number = parse_number<std::uint64_t>(digits);
  if (!number || *number == 0 || *number > kLargest / unit) return std::nullopt;
  return *number * unit;
}

std::string size_text(std::uint64_t bytes) {
  for (const auto& [name, unit] : kSizeUnits)
    if (bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
  return std::to_string(bytes);
}

std::string grouped(std::uint64_t number) { return grouped_digits(std::to_string(number)); }

std::string significant(double number, int digits) {
  TW_CHECK(digits > 0);
  if (!std::isfinite(number)) return fmt::format("{}", number);
  const std::string rounded = fmt::format("{:.{}e}", std::abs(number), digits - 1);
  const int exponent = std::atoi(rounded.c_str() + rounded.find('e') + 1);
  const int decimals = std::clamp(digits - 1 - exponent, 0, kMostDecimals);
  const std::string text = fmt::format("{:.{}f}", std::strtod(rounded.c_str(), nullptr), decimals);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string fraction = text.substr(point);
  while (fraction.ends_with('0') || fraction == ".") fraction.pop_back();
  return (number < 0 ? "-" : "") + grouped_digits(text.substr(0, point)) + fraction;
}

}  // namespace tw
