// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/size.h"
#include "host/address.h"
#include "wire/record.h"

namespace tw {

Result<std::uint64_t> parse_count(const std::string& option, const std::string& text, Bounds bounds) {
  const std::string expected = bounds.most == UINT64_MAX
                                   ? fmt::format("a whole number from {} on", bounds.least)
                                   : fmt::format("a whole number from {} to {}", bounds.least, bounds.most);
  const auto value = parse_number<std::uint64_t>(text);
  if (!value) return Error{fmt::format("{} {}: expected {}", option, text, expected)};
  const std::uint64_t nearest_value = std::clamp(*value, bounds.least, bounds.most);
  if (*value != nearest_value)
    return Error{
        fmt::format("{} {}: expected {}, for example {} {}", option, text, expected, option, nearest_value)};
  return *value;
}

Result<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = parse_number<std::uint64_t>(text.substr(0, dots));
  const auto last =
      dots == std::string::npos ? std::nullopt : parse_number<std::uint64_t>(text.substr(dots + 2));
  const std::string expected = "expected A..B, the first seed and the last";
  if (first && dots == std::string::npos)
    return Error{fmt::format("--seeds {}: {}; for one seed --seed {}, for so many of them --seeds 1..{}",
                             text, expected, text, std::max<std::uint64_t>(1, *first))};
  if (!first || !last)
    return Error{fmt::format("--seeds {}: {}, for example --seeds 1..100", text, expected)};
  if (*first > *last)
    return Error{fmt::format("--seeds {}: {}; did you mean --seeds {}..{}?", text, expected, *last, *first)};
  if (*last - *first == UINT64_MAX)
    return Error{fmt::format("--seeds {}: {}, fewer than 2^64 of them", text, expected)};
  return std::pair(*first, *last);
}

Result<std::pair<std::string, std::string>> parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error{fmt::format(
        "--set {}: expected KEY=VALUE with a key of the run file, such as training.rounds=20", text)};
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<std::string> parse_address_option(const std::string& option, const std::string& text) {
  const auto address = parse_address(text);
  if (!address) {
    const std::string like =
        text.find(':') == std::string::npos && !text.empty() ? fmt::format(", such as {}:7000", text) : "";
    return Error{fmt::format("{} {}: expected HOST:PORT{}", option, text, like)};
  }
  return text;
}

Result<LogLimits> parse_log_limit(const std::string& text) {
  constexpr std::uint64_t kLeast = 64ULL << 10, kMost = 16ULL << 30;
  const LogLimits usual;
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < kLeast || *bytes > kMost)
    return Error{fmt::format("--log-limit {}: expected a size from {} to {}, such as {}", text,
                             size_text(kLeast), size_text(kMost), "256MiB")};
  return LogLimits{.part_bytes = *bytes / usual.parts, .parts = usual.parts};
}

Result<std::string> parse_site_option(const std::string& text) {
  const auto is_fine = [](char c) { return c > ' ' && c < 0x7f; };
  if (text.size() <= kMostSiteBytes && std::ranges::all_of(text, is_fine)) return text;
  return Error{
      fmt::format("--site {}: expected a name of at most {} letters, digits and signs without spaces, the "
                  "same on all peers "
                  "that share a local network, such as aws:us-east-1:a",
                  text, kMostSiteBytes)};
}

}  // namespace tw
