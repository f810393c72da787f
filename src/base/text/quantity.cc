// SPDX-License-Identifier: Apache-2.0
#include "base/text/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/check.h"

namespace tw {
namespace {

constexpr int kMostDecimals = 15;

std::string grouped_digits(std::string digits) {
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace

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
