// SPDX-License-Identifier: Apache-2.0
#include "peer/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "host/address.h"
#include "wire/record.h"

namespace tw::peer {

Result<std::string> parse_address_option(const OptionName& option, const std::string& text) {
  if (host::parse_address(text)) return text;
  const std::string like =
      text.find(':') == std::string::npos && !text.empty() ? fmt::format(", such as {}:7000", text) : "";
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
  const auto is_fine = [](char c) { return c > ' ' && c < 0x7f; };
  if (text.size() <= wire::kMostSiteBytes && std::ranges::all_of(text, is_fine)) return text;
  return Error{
      fmt::format("{}: expected a name of at most {} letters, digits and signs without spaces, the same on "
                  "all peers that share a local network, such as aws:us-east-1:a",
                  option.with(text), wire::kMostSiteBytes)};
}

}  // namespace tw::peer
