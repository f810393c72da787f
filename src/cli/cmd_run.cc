// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/text/option.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/link_arguments.h"
#include "cli/commands.h"
#include "cli/plan/catalog_price.h"
#include "cli/terminal/terminal.h"
#include "host/identity/authority.h"
#include "host/system/free_port.h"
#include "host/system/temporary_folder.h"
#include "launch/local/child.h"
#include "launch/local/program_crew.h"
#include "peer/spelling.h"
#include "peer/token_file.h"

namespace tw::cli {

namespace {

using launch::Variable;

constexpr std::int64_t kProgramTokenLasts_s = 30LL * 86400;

Status check(const RunArguments& arguments, std::uint64_t peers) {
  const peer::LinkOptions& links = arguments.links;
  if (arguments.words.empty())
    return Error{"nothing to run; write the command after --, as in: tw run --peers 2 -- python3 train.py"};
  if (!arguments.run_file.empty() && !std::filesystem::exists(arguments.run_file))
    return Error{fmt::format("{}: no such file; a command comes after --", arguments.run_file)};
  const int ways = static_cast<int>(!links.token.empty()) + static_cast<int>(!links.run_folder.empty()) +
                   static_cast<int>(links.insecure);
  if (ways > 1) return Error{"--token, --run and --insecure: give one of them"};
  if (links.rejoin && links.no_rejoin) return Error{"--rejoin and --no-rejoin: give one of them"};
  if (peers > 1 && !links.id.empty())
    return Error{fmt::format("--id {}: goes with one process, and --peers is {}", links.id, peers)};
  return Unit{};
}

/// KEY=VALUE;KEY=VALUE of TRADEWIND_SET.
Result<std::string> settings_text(const std::vector<std::string>& settings) {
  for (const std::string& text : settings) {
    if (const auto setting = parse_setting(text); !setting) return setting.error();
    if (text.find(';') != std::string::npos)
      return Error{fmt::format("--set {}: a value of a program's run cannot hold a ;", text)};
  }
  return fmt::format("{}", fmt::join(settings, ";"));
}

/// Variables that are the same for all processes.
Result<std::vector<Variable>> common(const RunArguments& arguments) {
  std::vector<Variable> all = variables_of(arguments.links);
  const auto settings = settings_text(arguments.set);
  if (!settings) return settings.error();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) all.emplace_back(name, value);
  };
  add("TRADEWIND_RUN", arguments.run_file);
  add("TRADEWIND_SET", settings.value());
  add("TRADEWIND_THREADS", arguments.threads);
  // The user's own folders go first.
  const std::filesystem::path beside = std::filesystem::path(launch::own_path()).parent_path() / "python";
  const char* const path = std::getenv("PYTHONPATH");
  if (std::filesystem::exists(beside / "tradewind"))
    add("PYTHONPATH", (path == nullptr || *path == '\0' ? "" : std::string(path) + ":") + beside.string());
  if (std::getenv("PYTHONUNBUFFERED") == nullptr)
    add("PYTHONUNBUFFERED", "1");  // whoever is killed has said it
  return all;
}

/// Peers of one run on this machine: the first one listens where the others find it, at `meeting`.
std::vector<std::vector<Variable>> environments(const RunArguments& arguments,
                                                const std::vector<Variable>& common, std::uint64_t peers,
                                                const std::string& meeting) {
  const std::string wait_for = peer::variable_of("wait_for"), listen = peer::variable_of("listen"),
                    watch = peer::variable_of("watch");
  std::vector<std::vector<Variable>> all;
  for (std::uint64_t number = 1; number <= peers; ++number) {
    std::vector<Variable> one = common;
    const bool founds = number == 1 && arguments.links.join.empty();
    std::erase_if(one, [&](const Variable& variable) {
      return number > 1 && (variable.first == listen || variable.first == watch);
    });
    if (number == 1 && !meeting.empty() && arguments.links.listen.empty()) one.emplace_back(listen, meeting);
    if (number > 1 && arguments.links.join.empty()) one.emplace_back(peer::variable_of("join"), meeting);
    if (founds && peers > 1 && arguments.links.wait_for.empty())
      one.emplace_back(wait_for, std::to_string(peers));
    if (std::getenv("TRADEWIND_PROGRESS") == nullptr && arguments.links.progress.empty())
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
  for (const peer::LinkField& field : peer::link_fields()) describe_link(*command, field, arguments.links);
  forget_defaults(arguments.links);
  command->add_option("--threads", arguments.threads, "threads of the program, as TRADEWIND_THREADS");
  command->add_option("--set", arguments.set, "KEY=VALUE, wins over the run file")->allow_extra_args(false);
  command
      ->add_option("--restarts", arguments.restarts,
                   "how often a process that a signal ended is started again")
      ->capture_default_str();
  command->footer(
      "The command comes after --. Each option becomes a variable of its environment (docs/python.md): "
      "--wait-for 4 is\nTRADEWIND_WAIT_FOR=4. There is no rank and no world size: a process that dies is a "
      "peer "
      "that is lost, and the\nothers go on. Of several processes the first has --listen and --watch.\n"
      "SIGINT (Ctrl-C), SIGTERM, SIGUSR1 and SIGUSR2 go to all: the first lets them leave after the round, "
      "the "
      "others\nare notices. 3 s after the second SIGINT, or a SIGTERM a second after the first, they are "
      "killed.\n"
      "Exit code: that of the first process that failed (1: it ended with 0 and never took part, 2: nothing "
      "is left of\nthe run); 75 when they left on a notice and the run goes on; 0 when those that signals "
      "ended "
      "were not the last.\n"
      "\nExamples:\n"
      "  tw run --peers 2 -- python3 train.py\n"
      "  tw run --peers 4 --out logs run.yaml -- python3 train.py --width 256\n"
      "  tw run --run myrun --listen 10.0.0.5:7000 -- python3 train.py\n"
      "  tw run --token @token --join 10.0.0.5:7000 -- python3 train.py");
}

int run_program(const RunArguments& arguments) {
  const auto peers = parse_count("--peers", arguments.peers, {.least = 1, .most = launch::kMaxLocalPeers});
  if (!peers) return complain(peers.error().message, kUsage);
  if (const Status right = check(arguments, peers.value()); !right)
    return complain(right.error().message, kUsage);
  const auto restarts = parse_count("--restarts", arguments.restarts, {.least = 0, .most = 1'000'000});
  if (!restarts) return complain(restarts.error().message, kUsage);
  RunArguments given = arguments;
  peer::LinkOptions& links = given.links;
  const auto price = price_text(links.usd_per_h, links.site);
  if (!price) return complain(price.error().message, kUsage);
  links.usd_per_h = price.value();
  const bool begins = peers.value() > 1 && links.join.empty();
  std::string meeting = links.listen;
  if (meeting.empty() && begins) {
    const auto port = host::free_port();
    if (!port) return complain(port.error().message, kFailed);
    meeting = fmt::format("127.0.0.1:{}", port.value());
  }
  const host::TemporaryFolder folder;  // of the token and of verdicts
  const bool open = links.token.empty() && links.run_folder.empty() && !links.insecure;
  if (open && begins) {
    const std::string file = peer::token_file(folder.path());
    const Status written =
        host::write_secret_file(file, to_text(host::token_for_one_run("local", kProgramTokenLasts_s)) + "\n");
    if (!written) return complain(written.error().message, kFailed);
    links.token = "@" + file;
  }
  const auto variables = common(given);
  if (!variables) return complain(variables.error().message, kUsage);
  launch::ProgramCrew crew({.words = given.words,
                            .environments = environments(given, variables.value(), peers.value(), meeting),
                            .restarts = restarts.value(),
                            .out = [](const std::string& line) { show_news(line); },
                            .say = [](const std::string& line) { warn(line); },
                            .folder = folder.path(),
                            .must_join = true,
                            .all_begin = begins});
  return crew.run();
}

}  // namespace tw::cli
