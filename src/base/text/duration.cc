// SPDX-License-Identifier: Apache-2.0
#include "base/text/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/number.h"

namespace tw {
namespace {

struct DurationUnit {
  std::string_view name;
  double seconds;
};

constexpr double kLongest_s = 365 * 86400.0;
constexpr DurationUnit kDurationUnits[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = parse_number<double>(text.substr(0, digits));
  for (const auto& [name, seconds] : kDurationUnits) {
    if (number && text.substr(digits) == name && *number * seconds <= kLongest_s)
      return from_seconds(*number * seconds);
  }
  return std::nullopt;
}

std::string duration_text(double seconds) {
  constexpr double kMost = 10 * 365 * 86400.0;
  if (!(seconds < kMost)) return "more than 10 years";
  const std::int64_t s = std::llround(std::max(0.0, seconds));
  if (s >= 86400) return fmt::format("{} d {} h", s / 86400, s % 86400 / 3600);
  if (s >= 3600) return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
  if (s >= 60) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} s", s);
}

}  // namespace tw
