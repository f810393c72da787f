// SPDX-License-Identifier: Apache-2.0
#include "peer/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text/duration.h"
#include "base/text/fields.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "host/address.h"
#include "market/site.h"
#include "wire/record.h"

namespace tw::peer {

Result<std::uint64_t> parse_threads_option(const OptionName& option, const std::string& text) {
  return parse_count(option, text, {.least = 1, .most = kMostThreads});
}

Result<std::string> parse_address_option(const OptionName& option, const std::string& text) {
  if (host::parse_address(text)) return text;
  const bool is_port =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const bool is_host = !text.empty() && text.find(':') == std::string::npos;
  const std::string like = is_port   ? fmt::format(", such as 127.0.0.1:{}", text)
                           : is_host ? fmt::format(", such as {}:7000", text)
                                     : "";
  return Error{fmt::format("{}: expected HOST:PORT{}", option.with(text), like)};
}

Result<monitor::LogLimits> parse_log_limit(const OptionName& option, const std::string& text) {
  constexpr std::uint64_t kLeast = 64ULL << 10, kMost = 16ULL << 30;
  const monitor::LogLimits usual;
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < kLeast || *bytes > kMost)
    return Error{fmt::format("{}: expected a size from {} to {}, such as {}", option.with(text),
                             size_text(kLeast), size_text(kMost), "256MiB")};
  return monitor::LogLimits{.part_bytes = *bytes / usual.parts, .parts = usual.parts};
}

Result<std::string> parse_site_option(const OptionName& option, const std::string& text) {
  if (text.empty()) return text;
  if (const auto site = market::parse_site(text); !site) return Error{option.with(site.error().message)};
  const auto is_fine = [](char c) { return c > ' ' && c < 0x7f; };
  if (text.size() <= wire::kMostSiteBytes && std::ranges::all_of(text, is_fine)) return text;
  return Error{
      fmt::format("{}: expected at most {} letters, digits and signs without spaces, the same on all peers "
                  "that share a local network, such as aws:us-east-1:a",
                  option.with(text), wire::kMostSiteBytes)};
}

Result<spot::NoticeOptions> parse_notices_option(const OptionName& option, const std::string& text) {
  using Ask = spot::NoticeOptions::Ask;
  static const std::pair<std::string, Ask> kWords[] = {{"auto", Ask::automatic}, {"aws", Ask::aws},
                                                       {"gcp", Ask::gcp},        {"azure", Ask::azure},
                                                       {"signal", Ask::signal},  {"none", Ask::none}};
  constexpr std::string_view kFile = "file:";
  std::vector<std::string> known;
  for (const auto& [word, ask] : kWords) {
    if (text == word) return spot::NoticeOptions{.ask = ask};
    known.push_back(word);
  }
  if (text.starts_with(kFile) && text.size() > kFile.size()) {
    std::error_code error;
    const auto path = std::filesystem::absolute(text.substr(kFile.size()), error);
    if (!error && !std::filesystem::is_directory(path, error))
      return spot::NoticeOptions{.ask = Ask::file, .path = path.string()};
  }
  return Error{fmt::format("{}: expected auto, aws, gcp, azure, signal, none or file:PATH{}",
                           option.with(text), did_you_mean(text, known))};
}

bool asks_catalog(const std::string& price) { return price == "catalog" || price.starts_with("catalog:"); }

Result<std::optional<double>> parse_price_option(const OptionName& option, const std::string& text) {
  constexpr double kMostUsdPerH = 1e5;
  if (text.empty()) return std::optional<double>();
  const auto usd = parse_number<double>(text);
  if (usd && *usd >= 0 && *usd <= kMostUsdPerH) return usd;
  return Error{
      fmt::format("{}: expected USD an hour from 0 to 100000, such as 0.35; tw run also takes catalog[:TYPE]",
                  option.with(text))};
}

Result<Duration> parse_grace_option(const OptionName& option, const std::string& text) {
  const auto grace = parse_duration(text);
  if (grace && *grace >= std::chrono::seconds(1) && *grace <= std::chrono::hours(1)) return *grace;
  return Error{fmt::format("{}: expected a duration from 1s to 1h, such as 25s", option.with(text))};
}

}  // namespace tw::peer
