// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/text/printable.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "host/identity/authority.h"
#include "host/system/calendar.h"
#include "peer/token_file.h"

namespace tw::cli {

namespace {

constexpr std::size_t kMostName = 64;  // what an X.509 certificate allows
constexpr std::int64_t kTokenLasts_s = 30LL * 86400;

std::string name_of_folder(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

void describe_init(CLI::App& app, InitArguments& arguments) {
  CLI::App* command = app.add_subcommand("init", "Create a run folder with the key that admits peers");
  command->add_option("FOLDER", arguments.folder, "new folder; one that holds a run is not replaced")
      ->required();
  command->add_option("--name", arguments.name, "name of the run; default: the name of the folder");
  command->footer(
      "FOLDER gets ca.key, which makes tokens and stays here; ca.crt; and token, with which peers on this\n"
      "machine take part for 30 days (tw run --run FOLDER). No peer and no server needs the key later.\n"
      "\n"
      "Examples:\n"
      "  tw init myrun\n"
      "  tw init myrun --name words-eu");
}

int init(const InitArguments& arguments) {
  const std::string name = arguments.name.empty() ? name_of_folder(arguments.folder) : arguments.name;
  if (name.empty() || name.size() > kMostName || !is_printable_line(name))
    return complain(fmt::format("--name {}: expected 1 to {} bytes of text", name, kMostName), kUsage);
  const host::Authority authority = host::Authority::create(name);
  if (const Status saved = authority.save(arguments.folder); !saved)
    return complain(saved.error().message, kFailed);
  const std::int64_t now = host::now_unix_s();
  const wire::Token token = authority.issue({.from_unix_s = now, .expires_unix_s = now + kTokenLasts_s});
  if (const Status saved = host::write_secret_file(peer::token_file(arguments.folder), to_text(token) + "\n");
      !saved)
    return complain(saved.error().message, kFailed);
  print_out(
      "run {} in {}\n"
      "a peer on this machine:   tw run --run {} --listen HOST:PORT -- COMMAND\n"
      "a token for another one:  tw token {} --address HOST:PORT\n",
      run_of(token), arguments.folder, arguments.folder, arguments.folder);
  return kDone;
}

}  // namespace tw::cli
