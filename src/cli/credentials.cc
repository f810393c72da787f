// SPDX-License-Identifier: Apache-2.0
#include "cli/credentials.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/nearest_name.h"
#include "base/number.h"
#include "base/text_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace tw {
namespace {

constexpr std::uint64_t kMostTokenFileBytes = 64 << 10;

/// A token is a secret: its holder can take part.
void warn_of_readers(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr fs::perms kOthers =
      fs::perms::group_read | fs::perms::group_write | fs::perms::others_read | fs::perms::others_write;
  std::error_code error;
  const fs::perms allowed = fs::status(path, error).permissions();
  if (error || (allowed & kOthers) == fs::perms::none) return;
  complain(
      fmt::format("warning: {0} holds a token and is open to other users of this machine (mode {1:04o}): "
                  "chmod 600 {0}",
                  path, static_cast<unsigned>(allowed)),
      kDone);
}

}  // namespace

std::string token_file(const std::string& run_folder) { return run_folder + "/token"; }

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

Result<Role> parse_role(const std::string& text) {
  for (const Role role : {Role::peer, Role::anchor, Role::observer})
    if (text == name_of(role)) return role;
  const std::string meant = nearest_name(text, std::vector<std::string>{"peer", "anchor", "observer"});
  return Error{fmt::format("--role {}: expected peer, anchor or observer{}", text,
                           meant.empty() ? "" : fmt::format("; did you mean --role {}?", meant))};
}

Result<Token> read_token(const std::string& option, const std::string& text) {
  if (!text.starts_with("@")) {
    auto token = token_in(text);
    if (!token) return Error{fmt::format("{}: what was given {}", option, token.error().message)};
    return token;
  }
  const std::string path = text.substr(1);
  const auto content = read_text_file(path, kMostTokenFileBytes);
  if (!content)
    return Error{fmt::format("{} @{}; `tw token FOLDER --out {}` makes it where the run folder is", option,
                             content.error().message, path)};
  warn_of_readers(path);
  auto token = token_in(content.value());
  if (!token) return Error{fmt::format("{} {}: what the file holds {}", option, text, token.error().message)};
  return token;
}

}  // namespace tw
