// SPDX-License-Identifier: Apache-2.0
#include "spot/notice_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "base/text/date.h"
#include "base/text/number.h"

namespace tw::spot {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// "Mon, 19 Sep 2016 18:29:47 GMT" as "2016-09-19T18:29:47Z"; other texts as they are.
std::string as_date(std::string_view text) {
  if (const std::size_t comma = text.find(", "); comma != std::string_view::npos)
    text.remove_prefix(comma + 2);
  std::vector<std::string_view> words;
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(text.size(), end + 1))) {
    end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
  }
  if (words.size() != 5 || (words[4] != "GMT" && words[4] != "UTC")) return {};
  const auto day = parse_number<int>(words[0]);
  const auto* const month = std::ranges::find(kMonths, words[1]);
  if (!day || month == kMonths.end()) return {};
  return fmt::format("{}-{:02}-{:02}T{}Z", words[2], month - kMonths.begin() + 1, *day, words[3]);
}

}  // namespace

std::string Outage::failed(const std::string& line) {
  return ++failures_ == kFailuresBefore ? line : std::string();
}

std::string words_of(const Result<world::HttpAnswer>& answer) {
  return answer ? fmt::format("HTTP status {}", answer.value().status) : answer.error().message;
}

std::optional<std::int64_t> parse_provider_time(const std::string& text) {
  if (const auto date = parse_date(text)) return date;
  return parse_date(as_date(text));
}

Instant deadline_at(std::int64_t unix_s, const Moment& at, const world::HttpAnswer& answer) {
  const auto dated = answer.header("Date");
  const auto their_now = dated ? parse_provider_time(*dated) : std::nullopt;
  const std::int64_t left_s = unix_s - their_now.value_or(at.unix_s);
  return at.now + std::max(Duration::zero(), from_seconds(static_cast<double>(left_s)));
}

}  // namespace tw::spot
