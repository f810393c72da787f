// SPDX-License-Identifier: Apache-2.0
#include "peer/token_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/text/text.h"
#include "base/text/text_file.h"

namespace tw::peer {
namespace {

constexpr std::uint64_t kMostTokenFileBytes = 64 << 10;

/// A token is a secret: its holder can take part.
void warn_of_readers(const std::string& path, const Warn& warn) {
  namespace fs = std::filesystem;
  constexpr fs::perms kOthers =
      fs::perms::group_read | fs::perms::group_write | fs::perms::others_read | fs::perms::others_write;
  std::error_code error;
  const fs::perms allowed = fs::status(path, error).permissions();
  if (error || !warn || (allowed & kOthers) == fs::perms::none) return;
  warn(
      fmt::format("{0} holds a token and is open to other users of this machine (mode {1:04o}): "
                  "chmod 600 {0}",
                  path, static_cast<unsigned>(allowed)));
}

/// where: begins every message, before the path.
Result<wire::Token> token_of_file(const std::string& where, const std::string& path,
                                  const std::string& remedy, const Warn& warn) {
  const auto content = read_text_file(path, kMostTokenFileBytes);
  if (!content) return Error{where + content.error().message + "; " + remedy};
  warn_of_readers(path, warn);
  auto token = wire::token_in(std::string(without_byte_order_mark(content.value())));
  if (!token) return Error{fmt::format("{}{}: what the file holds {}", where, path, token.error().message)};
  return token;
}

}  // namespace

std::string token_file(const std::string& run_folder) { return run_folder + "/token"; }

Result<wire::Token> read_token(const OptionName& option, const std::string& text, const Warn& warn) {
  if (!text.starts_with("@")) {
    auto token = wire::token_in(text);
    std::error_code error;
    const bool is_file = std::filesystem::is_regular_file(text, error);
    if (!token)
      return Error{
          fmt::format("{}: what was given {}{}", option.name, token.error().message,
                      is_file ? fmt::format("; {} is a file: {}", text, option.with("@" + text)) : "")};
    return token;
  }
  const std::string path = text.substr(1);
  return token_of_file(option.with("@"), path,
                       fmt::format("`tw token FOLDER --out {}` makes it where the run folder is", path),
                       warn);
}

Result<wire::Token> read_folder_token(const OptionName& option, const std::string& folder, const Warn& warn) {
  const std::string path = token_file(folder);
  return token_of_file(
      option.with(folder) + ": ", path,
      fmt::format("`tw init FOLDER` makes a run folder, and `tw token {} --out {}` the token "
                  "of one",
                  folder, path),
      warn);
}

}  // namespace tw::peer
