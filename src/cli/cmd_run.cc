// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "cli/arguments/link_arguments.h"
#include "cli/commands.h"
#include "cli/run/run_crew.h"
#include "cli/terminal/terminal.h"
#include "host/loop.h"
#include "host/system/temporary_folder.h"
#include "launch/local/crew.h"
#include "monitor/logs/log_file.h"
#include "monitor/logs/log_follower.h"
#include "monitor/report/report.h"
#include "monitor/report/report_text.h"
#include "monitor/report/summary_json.h"

namespace tw::cli {

namespace {

/// The report of a crew that was all of its run, and the exit code. run: its digest.
int report_on(const std::string& out, const std::string& run, int code) {
  if (const auto logs = monitor::find_event_logs(out); !logs) {
    warn(fmt::format("the event logs of this run are gone, so there is no report: {}", logs.error().message));
    return code;
  }
  const auto newest = monitor::LogFollower::of_whole_logs(out);
  if (!newest) return complain(newest.error().message, kFailed);
  if (newest.value().run() != run) return code;  // it came to no round, and the logs are of another one
  const auto summarized = summarize(newest.value(), {}, {.ended = true});
  if (!summarized) return complain(summarized.error().message, kFailed);
  const monitor::Summary& summary = summarized.value();
  if (summary.rounds == 0) return code;
  const Status written = write_summary(out, summary);
  print_out("\n{}\n{}: {}\n", render(summary), written ? "event logs and summary.json" : "event logs", out);
  if (!written) return complain(written.error().message, kFailed);
  if (summary.identical) return code;
  return complain("parameters differ: " + summary.difference, code == kDone ? kUsage : code);
}

}  // namespace

void describe_run(CLI::App& app, RunArguments& arguments) {
  CLI::App* command = app.add_subcommand("run", "Train with your program: start it as one or more peers");
  command->add_option("RUN.yaml", arguments.run_file,
                      "run file that tradewind.join() reads; default: the program sets it");
  command->add_option("--peers", arguments.peers, "processes to start, 1 to 64; gpus: one for each GPU")
      ->capture_default_str();
  for (const peer::LinkField& field : peer::link_fields()) describe_link(*command, field, arguments.links);
  command->get_option("--join")->description(
      "HOST:PORT of any peer of the run; or ROUND: start one more process then");
  forget_defaults(arguments.links);
  command->add_option("--threads", arguments.threads, "threads of the program (TRADEWIND_THREADS)");
  command->add_option("--set", arguments.set, "KEY=VALUE, overrides the run file")->allow_extra_args(false);
  command->add_option("--restarts", arguments.restarts, "how often to restart a process that a signal ended")
      ->capture_default_str();
  command
      ->add_option("--kill", arguments.kill,
                   "PEER@ROUND or leader@ROUND: SIGKILL during this round; peers count from 1")
      ->allow_extra_args(false);
  command
      ->add_option("--stop", arguments.stop,
                   "PEER@ROUND[:SECONDS] or leader@...: SIGSTOP, then SIGCONT (10 s)")
      ->allow_extra_args(false);
  for (const char* fault : {"--kill", "--stop", "--restarts"}) command->get_option(fault)->group("Faults");
  for (const char* link : {"--join", "--listen", "--wait-for", "--token", "--run", "--insecure"})
    command->get_option(link)->group("Links");
  command->footer(
      "The command comes after --. Each option becomes a variable of its environment (docs/python.md):\n"
      "--wait-for 4 is TRADEWIND_WAIT_FOR=4. There is no rank and no world size: a process that dies is a\n"
      "lost peer, and the others go on. The first process has --listen and --watch; each has its share of\n"
      "the cores in OMP_NUM_THREADS. A second start with the same --out resumes the run from its\n"
      "checkpoints; --anew begins from round 1. Another setting or model makes another run.\n"
      "SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 go to all processes: SIGINT lets them leave\n"
      "after the round, the others are notices (SIGHUP not under nohup). 3 s after the second SIGINT, or a\n"
      "SIGTERM a second after the first, they are killed.\n"
      "Exit code: that of the first process that failed (1: it ended with 0 and never took part, or\n"
      "processes ended with 0 in the middle of the run and none completed it; 2: nothing is left of the\n"
      "run, another one trains in its folder, or parameters differ); 75 when they left on a notice and the\n"
      "run goes on; 0 when those that signals ended were not the last.\n"
      "\n"
      "Examples:\n"
      "  tw run --peers 2 -- python3 train.py\n"
      "  tw run --peers 4 --out logs run.yaml -- python3 train.py --width 256\n"
      "  tw run --peers 4 --out logs --kill 2@30 --join 45 -- python3 train.py\n"
      "  tw run --run myrun --listen 10.0.0.5:7000 -- python3 train.py\n"
      "  tw run --token @token --join 10.0.0.5:7000 -- python3 train.py");
}

int run_program(const RunArguments& arguments) {
  const auto plan = plan_run(arguments);
  if (!plan) return complain(plan.error().message, kUsage);
  const host::TemporaryFolder folder;  // of the token and of verdicts
  auto options = crew_options(plan.value(), folder.path());
  if (!options) return complain(options.error().message, kUsage);
  options.value().out = [](const std::string& line) { show_news(line); };
  options.value().say = [](const std::string& line) { warn(line); };
  const std::string out = options.value().out_folder;
  host::Loop clock;
  launch::Crew crew(clock, std::move(options).value());
  const auto code = crew.run();
  if (!code) return complain(code.error().message, kUsage);
  return out.empty() ? code.value() : report_on(out, crew.run_digest(), code.value());
}

}  // namespace tw::cli
