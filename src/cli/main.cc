// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <sstream>
#include <string_view>
#include <tuple>

#include "base/text/fields.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/completion.h"
#include "cli/arguments/data_arguments.h"
#include "cli/arguments/launch_arguments.h"
#include "cli/arguments/watch_arguments.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "host/system/allocation.h"
#include "host/system/early_signals.h"
#include "host/system/standard_streams.h"
#include "host/system/thrown.h"
#include "peer/link_options.h"

namespace tw::cli {
namespace {

constexpr const char* kVersion = "tw " TW_VERSION;

struct Arguments {
  InitArguments init;
  TokenArguments token;
  RunArguments run;
  WatchArguments watch;
  ReportArguments report;
  DataArguments data;
  TopArguments top;
  DoctorArguments doctor;
  SimArguments sim;
  PredictArguments predict;
  ProfileArguments profile;
  BenchArguments bench;
  CatalogArguments catalog;
  PlanArguments plan;
  ReplanArguments replan;
  ReplayArguments replay;
  NetArguments net;
  UpArguments up;
  DownArguments down;
  StatusArguments status;
  LogsArguments logs;
  std::string shell;
};

/// Each command with what runs it.
using Runs = std::map<const CLI::App*, std::function<int()>>;

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

int print_completion(const CLI::App& app, const std::string& shell) {
  const auto commands = completed_commands(app);
  if (shell == "bash") {
    print_out_text(bash_completion(commands));
  } else if (shell == "zsh") {
    print_out_text(zsh_completion(commands));
  } else {
    return complain(fmt::format("tw completion {}: expected bash or zsh", shell), kUsage);
  }
  return kDone;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

/// " local", " bench reduce"; empty for the program itself.
std::string name_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? "" : name_of(*command.get_parent()) + " " + command.get_name();
}

/// The command that was chosen, or one of its own.
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.front());
}

/// `tw run ... -- COMMAND`: what comes after is the user's.
bool takes_program(std::string_view command) { return command == "run" || command == "profile"; }

std::string unknown_argument(const CLI::App& command) {
  const std::vector<std::string> extra = command.remaining();
  if (extra.empty()) return "";
  std::string_view word = extra.front();
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  if (const auto instead = peer::replacement_of(word.substr(0, word.find('='))); !instead.empty())
    return fmt::format("--{} {}", word, instead);
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::vector<std::string> parts = command_names(command);
  known.insert(known.end(), parts.begin(), parts.end());
  std::string meant = did_you_mean(extra.front(), known);
  if (meant.empty() && !parts.empty() && !extra.front().starts_with('-'))
    meant = fmt::format("; expected one of {}", fmt::join(parts, ", "));
  if (meant.empty() && takes_program(command.get_name()) && !extra.front().starts_with('-'))
    meant = fmt::format("; write the program after --, as in: tw {} -- python3 train.py", command.get_name());
  return fmt::format("unknown argument {}{}", extra.front(), meant);
}

/// name: as name_of() has it.
int refuse_words(const std::string& name, const std::string& complaint) {
  show_aside(fmt::format("tw{0}: {1}\nsee: tw{0} --help", name, complaint));
  return kUsage;
}

int explain(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help or --version
    std::ostringstream text;
    const int code = app.exit(error, text, text);
    print_out_text(text.str());
    return code;
  }
  const CLI::App& command = chosen_command(app);
  const std::string name = name_of(command);
  const bool is_bare = !name.empty() && !command_names(command).empty() && command.remaining().empty();
  if (is_bare) {
    show_aside(command.help("tw"));
    return kUsage;
  }
  std::string message = unknown_argument(app);  // before the command
  if (!message.empty()) return refuse_words("", message);
  message = unknown_argument(command);
  if (message.empty()) message = error.what();
  for (const auto& [kind, words, ours] : {std::tuple{"ExcludesError", " excludes ", " does not go with "},
                                          {"RequiresError", " requires ", " goes with "}})
    if (const auto at = message.find(words); error.get_name() == kind && at != std::string::npos)
      message.replace(at, std::string_view(words).size(), ours);
  return refuse_words(name, message);
}

void describe_completion(CLI::App& app, std::string& shell) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for bash or zsh");
  command->add_option("SHELL", shell, "bash or zsh")->required();
  command->footer("Examples:\n  source <(tw completion bash)\n  tw completion zsh > \"${fpath[1]}/_tw\"");
}

/// The groups of the help, in its order.
void add_commands(CLI::App& app, Arguments& all, Runs& runs) {
  const char* group = "";
  const auto add = [&](auto describe_it, auto& arguments, auto run) {
    describe_it(app, arguments);
    CLI::App* command = app.get_subcommand(commands_of(app).back()->get_name());
    command->group(group);
    runs[command] = [run, &arguments] { return run(arguments); };
  };
  /// A command that has its own: run gets the name of the chosen one.
  const auto with_parts = [&app](auto run) {
    return [&app, run](const auto& arguments) { return run(arguments, chosen_command(app).get_name()); };
  };
  group = "Train";
  add(describe_run, all.run, run_program);
  add(describe_init, all.init, init);
  add(describe_token, all.token, token);
  add(describe_up, all.up, up);
  add(describe_down, all.down, down);
  add(describe_data, all.data, with_parts(run_data));
  group = "Plan";
  add(describe_plan, all.plan, plan);
  add(describe_replan, all.replan, replan);
  add(describe_predict, all.predict, predict);
  add(describe_profile, all.profile, profile);
  add(describe_catalog, all.catalog, with_parts(run_catalog));
  add(describe_net, all.net, with_parts(run_net));
  add(describe_replay, all.replay, replay);
  group = "Watch";
  add(describe_watch, all.watch, watch);
  add(describe_top, all.top, top);
  add(describe_status, all.status, status);
  add(describe_logs, all.logs, logs);
  add(describe_report, all.report, report);
  group = "Test";
  add(describe_doctor, all.doctor, doctor);
  add(describe_sim, all.sim, sim);
  add(describe_bench, all.bench, with_parts(run_bench));
  group = "Shell";
  add(describe_completion, all.shell,
      [&app](const std::string& shell) { return print_completion(app, shell); });
}

int run(int count, char** words) {
  CLI::App app("Train deep-learning models on machines that come and go.", "tw");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  Arguments arguments;
  Runs runs;
  add_commands(app, arguments, runs);
  app.footer(
      "Examples:\n"
      "  tw run --peers 4 --kill 2@10 --join 20 --out tw-out -- python3 train.py\n"
      "  tw watch tw-out --open\n"
      "  tw report tw-out\n"
      "  tw sim tests/scenarios/storm.yaml\n"
      "  tw plan examples/plan.yaml\n"
      "\n`tw COMMAND --help` tells more. Exit codes: 0 done, 1 the run failed, 2 wrong usage,\n"
      "75 a peer left on a notice and its run goes on, 130 interrupted.");
  if (count < 2) {
    show_aside(app.help());
    return kUsage;
  }
  const std::vector<std::string> commands = command_names(app);
  const std::string first = words[1];
  if (!first.starts_with('-') && std::find(commands.begin(), commands.end(), first) == commands.end()) {
    const bool is_option = first == "help" || first == "version";
    const std::string meant =
        is_option ? fmt::format("; did you mean \"tw --{}\"?", first) : did_you_mean(first, commands);
    return complain(fmt::format("{}: no such command{}\nsee: tw --help", first, meant), kUsage);
  }
  const auto end = std::find(words, words + count, std::string_view("--"));
  if (takes_program(first) && end != words + count) {
    (first == "run" ? arguments.run.words : arguments.profile.words).assign(end + 1, words + count);
    count = static_cast<int>(end - words);
  }
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  if (const std::string empty = empty_word_in(app); !empty.empty())
    return refuse_words(name_of(chosen_command(app)), empty);
  return runs.at(app.get_subcommands().front())();
}

}  // namespace

}  // namespace tw::cli

namespace {

constexpr int kNoticeSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// Before the libraries are constructed, which takes longer than some notices leave to a container.
void catch_signals_of_peers(int count, char** words, char**) {
  const std::string_view command = count > 1 ? words[1] : "";
  if (command == "run") tw::host::catch_early_signals(kNoticeSignals);
}

// The dynamic linker calls functions of this section before any constructor, also before those of libraries.
[[gnu::section(".preinit_array"), gnu::used]] void (*const first_of_all)(int, char**,
                                                                         char**) = catch_signals_of_peers;

}  // namespace

int main(int count, char** words) {
  tw::host::keep_freed_memory();
  std::signal(SIGPIPE, SIG_IGN);  // a closed terminal or socket is an error of the write, not the end
  std::signal(SIGCHLD, SIG_DFL);  // where it was ignored, exit codes of commands were lost
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow (ulimit -f)
  tw::host::hold_standard_streams();
  try {
    return tw::cli::finish_output(tw::cli::run(count, words));
  } catch (const std::bad_alloc&) {
    return tw::cli::complain("not enough memory on this machine", tw::cli::kFailed);
  } catch (const std::exception& error) {
    return tw::cli::complain(tw::host::words_of(error), tw::cli::kFailed);
  }
}
