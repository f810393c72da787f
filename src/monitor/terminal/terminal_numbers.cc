// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/terminal_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

namespace {

constexpr double kMostGrouped = 1e18;

}  // namespace

std::string bytes_text(double bytes) {
  if (bytes >= 1e12) return fmt::format("{:.1f} TB", bytes / 1e12);
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.0f} kB", bytes / 1e3);
}

std::string rate_text(double rate) {
  if (!std::isfinite(rate)) return "-";
  if (rate >= 1e3) return grouped(static_cast<std::uint64_t>(std::min(rate + 0.5, kMostGrouped)));
  return rate >= 10 ? fmt::format("{:.1f}", rate) : fmt::format("{:.2f}", rate);
}

std::string usd_text(double usd) {
  if (!std::isfinite(usd)) return "-";
  return usd != 0 && std::abs(usd) < 0.1 ? fmt::format("${:.4f}", usd) : fmt::format("${:.2f}", usd);
}

std::string usd_number(double usd) {
  if (!std::isfinite(usd)) return "-";
  const double size = std::abs(usd);
  if (size == 0 || size >= 1) return fmt::format("{:.{}f}", usd, size >= 1000 ? 0 : 2);
  const int digits = 2 - static_cast<int>(std::floor(std::log10(size)));
  return fmt::format("{:.{}f}", usd, std::min(digits, 12));
}

std::string date_and_time(double unix_s) {
  constexpr double kMost_s = 9e9;  // in 2255
  if (!(unix_s >= 0 && unix_s < kMost_s)) return "-";
  const std::string date = calendar_time(static_cast<std::int64_t>(unix_s) * 1'000'000'000).substr(0, 10);
  return date + " " + time_of_day(unix_s);
}

std::string time_of_day(double unix_s) {
  if (!(unix_s >= 0 && unix_s < kMostGrouped)) return "-";
  const auto s = static_cast<std::uint64_t>(unix_s) % 86400;
  return fmt::format("{:02}:{:02}:{:02}", s / 3600, s % 3600 / 60, s % 60);
}

}  // namespace tw::monitor
