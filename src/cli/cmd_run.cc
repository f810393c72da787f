// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/text/option.h"
#include "cli/commands.h"
#include "cli/plan/catalog_price.h"
#include "cli/terminal/terminal.h"
#include "host/identity/authority.h"
#include "host/system/free_port.h"
#include "host/system/temporary_folder.h"
#include "launch/local/child.h"
#include "launch/local/program_crew.h"
#include "peer/token_file.h"

namespace tw::cli {

namespace {

using launch::Variable;

constexpr std::int64_t kProgramTokenLasts_s = 30LL * 86400;

Status check(const RunArguments& arguments) {
  if (arguments.words.empty())
    return Error{"nothing to run; write the command after --, as in: tw run --peers 2 -- python3 train.py"};
  if (!arguments.run_file.empty() && !std::filesystem::exists(arguments.run_file))
    return Error{fmt::format("{}: no such file; a command comes after --", arguments.run_file)};
  const int ways = static_cast<int>(!arguments.token.empty()) +
                   static_cast<int>(!arguments.run_folder.empty()) + static_cast<int>(arguments.insecure);
  if (ways > 1) return Error{"--token, --run and --insecure: give one of them"};
  return Unit{};
}

std::vector<Variable> common(const RunArguments& arguments) {
  std::vector<Variable> all;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) all.emplace_back(name, value);
  };
  add("TRADEWIND_RUN", arguments.run_file);
  add("TRADEWIND_TOKEN", arguments.token);
  add("TRADEWIND_RUN_FOLDER", arguments.run_folder);
  add("TRADEWIND_SITE", arguments.site);
  add("TRADEWIND_NOTICES", arguments.notices);
  add("TRADEWIND_GRACE", arguments.grace);
  add("TRADEWIND_USD_PER_H", arguments.usd_per_h);
  add("TRADEWIND_OUT", arguments.out);
  add("TRADEWIND_JOIN", arguments.join);
  if (arguments.insecure) all.emplace_back("TRADEWIND_INSECURE", "1");
  return all;
}

/// Peers of one run on this machine: the first one listens where the others find it.
std::vector<std::vector<Variable>> environments(const RunArguments& arguments, std::uint64_t peers,
                                                const std::string& meeting) {
  std::vector<std::vector<Variable>> all;
  for (std::uint64_t number = 1; number <= peers; ++number) {
    std::vector<Variable> one = common(arguments);
    const bool founds = number == 1 && arguments.join.empty();
    if (number == 1 && !meeting.empty()) one.emplace_back("TRADEWIND_LISTEN", meeting);
    if (number > 1 && arguments.join.empty()) one.emplace_back("TRADEWIND_JOIN", meeting);
    if (founds && peers > 1) one.emplace_back("TRADEWIND_WAIT_FOR", std::to_string(peers));
    if (std::getenv("TRADEWIND_PROGRESS") == nullptr)
      one.emplace_back("TRADEWIND_PROGRESS", number == 1 ? "line" : "off");
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

void describe_run(CLI::App& app, RunArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("run", "Run a program of yours, such as a Python loop, as one or more peers");
  command->add_option("RUN.yaml", arguments.run_file,
                      "what tradewind.join() reads; none: the program says it");
  command->add_option("--peers", arguments.peers, "how many processes begin on this machine, 1 to 64")
      ->capture_default_str();
  command->add_option("--join", arguments.join, "HOST:PORT of any peer of the run; none: start the run");
  command->add_option("--listen", arguments.listen, "HOST:PORT where others reach the first process");
  command->add_option("--run", arguments.run_folder, "folder of `tw init`, for its token");
  command->add_option("--token", arguments.token, "TOKEN or @FILE, from `tw token`");
  command->add_flag("--insecure", arguments.insecure, "no TLS and no token, on all peers");
  command->add_option("--site", arguments.site, "PROVIDER:REGION:ZONE where this machine is");
  command->add_option("--notices", arguments.notices, "who says that this machine goes, as for tw train");
  command->add_option("--grace", arguments.grace,
                      "how long a notice without a deadline lasts, as for tw train");
  command->add_option("--usd-per-h", arguments.usd_per_h,
                      "price of each process, USD an hour, or catalog[:TYPE], as for tw train");
  command->add_option("--out", arguments.out, "folder for the event logs; none: no logs");
  command
      ->add_option("--restarts", arguments.restarts,
                   "how often a process that a signal ended is started again")
      ->capture_default_str();
  command->footer(
      "The command comes after --. It finds the run through TRADEWIND_* (docs/python.md). There is no rank "
      "and "
      "no\nworld size: a process that dies is a peer that is lost, and the others go on.\n"
      "SIGINT (Ctrl-C), SIGTERM, SIGUSR1 and SIGUSR2 go to all: the first lets them leave after the round, "
      "the "
      "others\nare notices. 3 s after the second SIGINT, or a SIGTERM a second after the first, they are "
      "killed.\n"
      "Exit code: that of the first process that failed; 75 when they left on a notice and the run goes on; "
      "0 "
      "when\nthose that signals ended were not the last.\n"
      "\nExamples:\n"
      "  tw run --peers 2 -- python3 train.py\n"
      "  tw run --peers 4 --out logs run.yaml -- python3 train.py --width 256\n"
      "  tw run --run myrun --listen 10.0.0.5:7000 -- python3 train.py\n"
      "  tw run --token @token --join 10.0.0.5:7000 -- python3 train.py");
}

int run_program(const RunArguments& arguments) {
  if (const Status right = check(arguments); !right) return complain(right.error().message, kUsage);
  const auto peers = parse_count("--peers", arguments.peers, {.least = 1, .most = launch::kMaxLocalPeers});
  if (!peers) return complain(peers.error().message, kUsage);
  const auto restarts = parse_count("--restarts", arguments.restarts, {.least = 0, .most = 1'000'000});
  if (!restarts) return complain(restarts.error().message, kUsage);
  RunArguments given = arguments;
  const auto price = price_text(arguments.usd_per_h, arguments.site);
  if (!price) return complain(price.error().message, kUsage);
  given.usd_per_h = price.value();
  std::string meeting = arguments.listen;
  if (meeting.empty() && arguments.join.empty() && peers.value() > 1) {
    const auto port = host::free_port();
    if (!port) return complain(port.error().message, kFailed);
    meeting = fmt::format("127.0.0.1:{}", port.value());
  }
  const host::TemporaryFolder folder;  // of the token and of verdicts
  const bool open = arguments.token.empty() && arguments.run_folder.empty() && !arguments.insecure;
  if (open && peers.value() > 1 && arguments.join.empty()) {
    const std::string file = peer::token_file(folder.path());
    const Status written =
        host::write_secret_file(file, to_text(host::token_for_one_run("local", kProgramTokenLasts_s)) + "\n");
    if (!written) return complain(written.error().message, kFailed);
    given.token = "@" + file;
  }
  launch::ProgramCrew crew({.words = given.words,
                            .environments = environments(given, peers.value(), meeting),
                            .restarts = restarts.value(),
                            .out = [](const std::string& line) { show_news(line); },
                            .say = [](const std::string& line) { warn(line); },
                            .folder = folder.path(),
                            .all_begin = peers.value() > 1 && arguments.join.empty()});
  return crew.run();
}

}  // namespace tw::cli
