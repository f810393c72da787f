// SPDX-License-Identifier: Apache-2.0
#include "base/text/date.h"

#include <fmt/format.h>

#include <chrono>

#include "base/text/number.h"

namespace tw {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::int64_t kDay = 86400;

/// The number of `count` digits at `from`; nothing if there are others.
std::optional<int> digits(std::string_view text, std::size_t from, std::size_t count) {
  if (text.size() < from + count) return std::nullopt;
  const std::string_view part = text.substr(from, count);
  if (part.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return parse_number<int>(part);
}

std::optional<std::int64_t> parse_day(std::string_view text) {
  const auto year = digits(text, 0, 4);
  const auto month = digits(text, 5, 2);
  const auto day = digits(text, 8, 2);
  if (!year || !month || !day || text[4] != '-' || text[7] != '-') return std::nullopt;
  const year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                            std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return sys_days(date).time_since_epoch() / days(1) * kDay;
}

/// "HH:MM", then optionally ":SS"; in seconds. Removes it from the text.
std::optional<std::int64_t> parse_clock(std::string_view& text) {
  const auto hour = digits(text, 0, 2);
  const auto minute = digits(text, 3, 2);
  if (!hour || !minute || text[2] != ':' || *hour > 23 || *minute > 59) return std::nullopt;
  text.remove_prefix(5);
  int second = 0;
  if (text.starts_with(':')) {
    const auto found = digits(text, 1, 2);
    if (!found || *found > 60) return std::nullopt;
    second = *found;
    text.remove_prefix(3);
  }
  return *hour * 3600 + *minute * 60 + second;
}

}  // namespace

std::optional<std::int64_t> parse_date(std::string_view text) {
  const auto day = parse_day(text);
  if (!day || text.size() == 10) return day;
  if (text[10] != 'T' && text[10] != ' ') return std::nullopt;
  text.remove_prefix(11);
  const auto time = parse_clock(text);
  if (!time) return std::nullopt;
  if (text.empty() || text == "Z") return *day + *time;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  const int sign = text[0] == '+' ? 1 : -1;
  text.remove_prefix(1);
  const auto ahead = parse_clock(text);
  if (!ahead || !text.empty()) return std::nullopt;
  return *day + *time - sign * *ahead;
}

std::string date_text(std::int64_t unix_s) {
  const std::int64_t day = (unix_s >= 0 ? unix_s : unix_s - kDay + 1) / kDay;
  const std::int64_t second = unix_s - day * kDay;
  const year_month_day date{sys_days(days(day))};
  const std::string text =
      fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()));
  if (second == 0) return text;
  return fmt::format("{}T{:02}:{:02}:{:02}Z", text, second / 3600, second / 60 % 60, second % 60);
}

}  // namespace tw
