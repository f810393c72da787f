// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <new>
#include <sstream>
#include <string_view>

#include "base/text/fields.h"
#include "cli/arguments/completion.h"
#include "cli/arguments/data_arguments.h"
#include "cli/arguments/launch_arguments.h"
#include "cli/arguments/watch_arguments.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "host/system/allocation.h"
#include "host/system/early_signals.h"

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
  NetArguments net;
  UpArguments up;
  DownArguments down;
  StatusArguments status;
  LogsArguments logs;
  std::string shell;
};

void describe(CLI::App& app, Arguments& arguments) {
  app.name("tw");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tw run --peers 4 --kill 2@10 --join 20 --out tw-out -- python3 train.py\n"
      "  tw watch tw-out --open\n"
      "  tw report tw-out\n"
      "  tw sim tests/scenarios/storm.yaml\n"
      "  tw plan examples/plan.yaml\n"
      "\n`tw COMMAND --help` tells more. Exit codes: 0 done, 1 the run failed, 2 wrong usage, 75 a peer left "
      "on a notice and "
      "its run goes on, 130 interrupted.");
  describe_init(app, arguments.init);
  describe_token(app, arguments.token);
  describe_run(app, arguments.run);
  describe_watch(app, arguments.watch);
  describe_report(app, arguments.report);
  describe_data(app, arguments.data);
  describe_top(app, arguments.top);
  describe_doctor(app, arguments.doctor);
  describe_sim(app, arguments.sim);
  describe_predict(app, arguments.predict);
  describe_profile(app, arguments.profile);
  describe_bench(app, arguments.bench);
  describe_catalog(app, arguments.catalog);
  describe_plan(app, arguments.plan);
  describe_up(app, arguments.up);
  describe_status(app, arguments.status);
  describe_logs(app, arguments.logs);
  describe_down(app, arguments.down);
  describe_net(app, arguments.net);
  CLI::App* completion = app.add_subcommand("completion", "A script that completes tw's command line");
  completion->add_option("SHELL", arguments.shell, "bash or zsh")->required();
  completion->footer("Examples:\n  source <(tw completion bash)\n  tw completion zsh > \"${fpath[1]}/_tw\"");
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
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
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

std::string unknown_argument(const CLI::App& command) {
  const std::vector<std::string> extra = command.remaining();
  if (extra.empty()) return "";
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const std::string& name : command_names(command)) known.push_back(name);
  return fmt::format("tw{}: unknown argument {}{}", name_of(command), extra.front(),
                     did_you_mean(extra.front(), known));
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
  std::string message = name.empty() ? "" : unknown_argument(command);
  if (message.empty()) message = fmt::format("tw{}: {}", name, error.what());
  show_aside(fmt::format("{}\nsee: tw{} --help", message, name));
  return kUsage;
}

int run(int count, char** words) {
  Arguments arguments;
  CLI::App app("Train deep-learning models on machines that come and go.");
  describe(app, arguments);
  const std::vector<std::string> commands = command_names(app);
  if (count < 2) {
    show_aside(app.help());
    return kUsage;
  }
  const std::string first = words[1];
  if (!first.starts_with('-') && std::find(commands.begin(), commands.end(), first) == commands.end()) {
    return complain(fmt::format("{}: no such command; there are {}{}", first, fmt::join(commands, ", "),
                                did_you_mean(first, commands)),
                    kUsage);
  }
  // `tw run ... -- COMMAND`: what comes after is the user's.
  const auto end = std::find(words, words + count, std::string_view("--"));
  if ((first == "run" || first == "profile") && end != words + count) {
    (first == "run" ? arguments.run.words : arguments.profile.words).assign(end + 1, words + count);
    count = static_cast<int>(end - words);
  }
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  if (app.got_subcommand("init")) return init(arguments.init);
  if (app.got_subcommand("token")) return token(arguments.token);
  if (app.got_subcommand("run")) return run_program(arguments.run);
  if (app.got_subcommand("doctor")) return doctor(arguments.doctor);
  if (app.got_subcommand("top")) return top(arguments.top);
  if (app.got_subcommand("watch")) return watch(arguments.watch);
  if (app.got_subcommand("sim")) return sim(arguments.sim);
  if (app.got_subcommand("predict")) return predict(arguments.predict);
  if (app.got_subcommand("profile")) return profile(arguments.profile);
  if (app.got_subcommand("bench")) return run_bench(arguments.bench, chosen_command(app).get_name());
  if (app.got_subcommand("catalog")) return run_catalog(arguments.catalog, chosen_command(app).get_name());
  if (app.got_subcommand("plan")) return plan(arguments.plan);
  if (app.got_subcommand("up")) return up(arguments.up);
  if (app.got_subcommand("status")) return status(arguments.status);
  if (app.got_subcommand("logs")) return logs(arguments.logs);
  if (app.got_subcommand("down")) return down(arguments.down);
  if (app.got_subcommand("data")) return run_data(arguments.data, chosen_command(app).get_name());
  if (app.got_subcommand("completion")) return print_completion(app, arguments.shell);
  if (app.got_subcommand("net"))
    return run_net(arguments.net, app.get_subcommand("net")->got_subcommand("probe"));
  return report(arguments.report);
}

}  // namespace

}  // namespace tw::cli

namespace {

constexpr int kNoticeSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

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
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow (ulimit -f)
  tw::cli::hold_standard_streams();
  try {
    return tw::cli::finish_output(tw::cli::run(count, words));
  } catch (const std::bad_alloc&) {
    return tw::cli::complain("not enough memory on this machine", tw::cli::kFailed);
  } catch (const std::exception& error) {
    return tw::cli::complain(error.what(), tw::cli::kFailed);
  }
}
