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

}  // namespace

std::string token_file(const std::string& run_folder) { return run_folder + "/token"; }

Result<wire::Token> read_token(const OptionName& option, const std::string& text, const Warn& warn) {
  if (!text.starts_with("@")) {
    auto token = wire::token_in(text);
    if (!token) return Error{fmt::format("{}: what was given {}", option.name, token.error().message)};
    return token;
  }
  const std::string path = text.substr(1);
  const auto content = read_text_file(path, kMostTokenFileBytes);
  if (!content)
    return Error{fmt::format("{}; `tw token FOLDER --out {}` makes it where the run folder is",
                             option.with("@" + content.error().message), path)};
  warn_of_readers(path, warn);
  auto token = wire::token_in(std::string(without_byte_order_mark(content.value())));
  if (!token)
    return Error{fmt::format("{}: what the file holds {}", option.with(text), token.error().message)};
  return token;
}

}  // namespace tw::peer
