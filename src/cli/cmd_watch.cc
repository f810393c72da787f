// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/result.h"
#include "cli/arguments/watch_arguments.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/watched.h"
#include "launch/local/child.h"
#include "peer/token_file.h"
#include "peer/values.h"

namespace tw::cli {
namespace {

/// What --token says, else the token that lies in the folder; for a server beyond this machine.
Result<std::optional<wire::Token>> token_of(const WatchArguments& arguments) {
  const std::string file = peer::token_file(arguments.what);
  std::error_code error;
  if (arguments.token.empty() && !std::filesystem::exists(file, error)) return std::optional<wire::Token>();
  TW_TRY(auto token,
         peer::read_token("--token", arguments.token.empty() ? "@" + file : arguments.token, warn));
  return std::optional(std::move(token));
}

Result<std::unique_ptr<Watched>> open_watched(host::Loop& loop, const WatchArguments& arguments) {
  TW_TRY(const auto listen, peer::parse_address_option("--listen", arguments.listen));
  const auto token = token_of(arguments);
  if (!token) return token.error();
  // The token is never shown in the clear.
  TW_TRY(auto feed, open_feed({.where = arguments.what,
                               .plan = arguments.plan,
                               .token = is_https(arguments.what) ? arguments.token : "",
                               .pin = arguments.pin,
                               .all_rounds = true},
                              loop));
  host::WebOptions web{.address = listen, .names = arguments.names, .token = token.value()};
  std::optional<TensorBoardFile> tensorboard;
  if (!arguments.tensorboard.empty()) tensorboard.emplace(arguments.tensorboard);
  return Watched::open(loop, std::move(feed), std::move(web), std::move(tensorboard));
}

void open_browser(const std::string& url) {
  // Its child outlives no process of ours, but what xdg-open has started does.
  static std::optional<launch::Child> child;
  auto started = launch::Child::start({"xdg-open", url}, "/dev/null");
  if (!started) return warn("--open: " + started.error().message);
  child.emplace(std::move(started).value());
}

}  // namespace

void describe_watch(CLI::App& app, WatchArguments& arguments) {
  CLI::App* command = app.add_subcommand("watch", "Show a run in the browser and to Prometheus");
  command
      ->add_option("LOGS|ADDRESS", arguments.what,
                   "folder with event logs, or HOST:PORT of a peer with --watch")
      ->required();
  command->add_option("--listen", arguments.listen, "HOST:PORT to serve on; port 0: any free one")
      ->capture_default_str();
  command->add_option("--token", arguments.token, "TOKEN or @FILE of the run; default: the token in LOGS");
  command->add_option("--pin", arguments.pin,
                      "sha256//... key of the certificate of ADDRESS, as its peer prints it");
  command->add_option("--name", arguments.names, "another name by which browsers may call this server")
      ->allow_extra_args(false);
  command->add_option("--plan", arguments.plan, "PLAN.yaml with the one price of all machines");
  command->add_option("--tensorboard", arguments.tensorboard,
                      "folder for a TensorBoard event file that grows with the run");
  command->add_flag("--open", arguments.open, "open a browser (xdg-open)");
  command->footer(
      "Ends with Ctrl-C. Shows, and changes nothing. Pages: /, /events, /board.json, /predict, /metrics,\n"
      "/summary.json, /trace.json (docs/watch.md). The token admits browsers on other machines, and is sent\n"
      "to ADDRESS where that is https://.\n"
      "Exit codes: 0 ended by Ctrl-C, 2 wrong usage, no such logs or --plan, or --listen cannot be bound.\n"
      "\n"
      "Examples:\n"
      "  tw watch tw-out --open\n"
      "  tw watch ~/.local/state/tradewind/mnist --listen 127.0.0.1:8080\n"
      "  tw watch tw-out --tensorboard boards\n"
      "  tw watch 127.0.0.1:8080 --listen 0.0.0.0:8443 --token @token\n"
      "  tw watch https://10.0.0.5:8443 --token @observer --pin sha256//Zm9v...=");
}

int watch(const WatchArguments& arguments) {
  host::Loop loop;
  const auto watched = open_watched(loop, arguments);
  if (!watched) return complain(watched.error().message, kUsage);
  loop.on_signal([&loop](int) { loop.stop(); });
  show_news("watch: " + watched.value()->viewer().how_to_watch());
  if (arguments.open) open_browser(watched.value()->viewer().url());
  loop.run();
  return kDone;
}

}  // namespace tw::cli
