// SPDX-License-Identifier: Apache-2.0
#include "base/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tw {
namespace {

constexpr double kRounding = 1e-9;  ///< of a step: what division may add

double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - kRounding)) return factor * power;
  return 10 * power;
}

int places_of(double step) {
  return std::max(0, static_cast<int>(-std::floor(std::log10(step) + kRounding)));
}

std::string with_separators(std::string digits) {
  const std::size_t begin = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = std::min(digits.find('.'), digits.size()); at > begin + 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

}  // namespace

Scale round_scale(double low, double high, int most) {
  const double span = high > low ? high - low : std::max(std::abs(high), 1.0);
  const double step = round_step(span / std::max(1, most));
  const auto first = static_cast<long long>(std::floor(low / step + kRounding));
  const auto last = std::max(first + 1, static_cast<long long>(std::ceil(high / step - kRounding)));
  Scale scale{.low = static_cast<double>(first) * step,
              .high = static_cast<double>(last) * step,
              .step = step,
              .ticks = {}};
  for (long long i = first; i <= last; ++i) scale.ticks.push_back(static_cast<double>(i) * step);
  return scale;
}

std::string tick_text(double value, double step) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return fmt::format("{}", value);
  for (const auto& [size, letter] : {std::pair{1e12, 'T'}, std::pair{1e9, 'G'}, std::pair{1e6, 'M'}})
    if (std::abs(value) >= size) return fmt::format("{} {}", tick_text(value / size, step / size), letter);
  return with_separators(fmt::format("{:.{}f}", value, places_of(step)));
}

}  // namespace tw
