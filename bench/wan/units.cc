// SPDX-License-Identifier: Apache-2.0
#include "wan/units.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "base/text/number.h"

namespace tw::wan {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kRates[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
constexpr Unit kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kSizes[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}};
constexpr Unit kShares[] = {{"", 1}, {"%", 0.01}};

std::optional<double> parse(std::string_view text, std::span<const Unit> units) {
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const auto number = parse_number<double>(text.substr(0, digits));
  const std::string_view name = digits == std::string_view::npos ? "" : text.substr(digits);
  for (const Unit& unit : units)
    if (number && unit.name == name) return *number * unit.factor;
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_bit_s(std::string_view text) { return parse(text, kRates); }

std::optional<double> parse_bytes(std::string_view text) { return parse(text, kSizes); }

std::optional<double> parse_share(std::string_view text) { return parse(text, kShares); }

std::optional<Duration> parse_duration(std::string_view text) {
  const auto seconds = parse(text, kTimes);
  if (!seconds) return std::nullopt;
  return Duration(std::llround(std::min(*seconds, 1e9) * 1e9));
}

std::string format_bit_s(double bit_s) {
  if (std::isinf(bit_s)) return "-";
  if (bit_s >= 1e9) return fmt::format("{:.4g} Gbit/s", bit_s / 1e9);
  return fmt::format("{:.4g} Mbit/s", bit_s / 1e6);
}

std::string format_ms(Duration duration) { return fmt::format("{:.4g} ms", to_seconds(duration) * 1e3); }

std::string format_bytes(double bytes) {
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", bytes / (1 << 20));
  return fmt::format("{:.0f} KiB", bytes / 1024);
}

}  // namespace tw::wan
