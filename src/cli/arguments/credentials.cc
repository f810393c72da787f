// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/credentials.h"

#include <fmt/format.h>

#include "base/text/fields.h"
#include "base/text/number.h"

namespace tw::cli {
Result<std::int64_t> parse_lifetime(const std::string& text) {
  constexpr std::int64_t kMost_s = 3650LL * 86400;
  const auto number = parse_number<std::int64_t>(text.empty() ? text : text.substr(0, text.size() - 1));
  const char unit = text.empty() ? ' ' : text.back();
  const std::int64_t unit_s = unit == 'd' ? 86400 : unit == 'h' ? 3600 : unit == 'm' ? 60 : 0;
  if (!number || *number < 1 || unit_s == 0 || *number > kMost_s / unit_s)
    return Error{fmt::format(
        "--expires {}: expected days, hours or minutes, at most 3650d, for example --expires 30d", text)};
  return *number * unit_s;
}

Result<wire::Role> parse_role(const std::string& text) {
  for (const wire::Role role : {wire::Role::peer, wire::Role::anchor, wire::Role::observer})
    if (text == name_of(role)) return role;
  const std::vector<std::string> known = {"peer", "anchor", "observer"};
  return Error{
      fmt::format("--role {}: expected peer, anchor or observer{}", text, did_you_mean(text, known))};
}

}  // namespace tw::cli
