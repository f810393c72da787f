// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cli/arguments/launch_arguments.h"
#include "cli/commands.h"
#include "cli/run/keep.h"
#include "cli/run/launching.h"
#include "cli/run/run_place.h"
#include "cli/terminal/terminal.h"

namespace tw::cli {
namespace {

int up_once(const UpArguments& arguments, const LaunchRequest& request, const launch::Engine& engine) {
  const auto runs = runs_folder(arguments.state);
  if (!runs) return complain(runs.error().message, kUsage);
  auto store = launch::RunStore::open_or_make(runs.value(), request.name);
  if (!store) return complain(store.error().message, kUsage);
  const Launched launched = launch_run(arguments, request, engine, store.value(), Launcher::person);
  if (launched.refused) return complain(launched.trouble, kUsage);
  if (launched.complete && !launched.trouble.empty()) return complain(launched.trouble, kFailed);
  if (launched.complete) {
    print_out("run {} is complete: nothing is started\n", request.name);
    return kDone;
  }
  if (arguments.check && launched.trouble.empty()) return kDone;
  if (arguments.dry_run) return kDone;
  if (!launched.started.empty()) print_out("started {}\n", names_of(launched.started));
  if (!launched.stopped.empty()) print_out("stopped {}\n", names_of(launched.stopped));
  if (!launched.trouble.empty()) {
    complain(launched.trouble, kFailed);
    return arguments.keep && !launched.started.empty() ? kDone : kFailed;  // --keep tries again
  }
  if (launched.started.empty() && launched.stopped.empty()) print_out("nothing to change\n");
  if (!launched.started.empty() && !request.has_checkpoints)
    print_out("checkpoint.folder is none: once no peer lives, the run is lost\n");
  print_out("run {}: {}\n", request.name, command_for("status", request.name, arguments.state));
  return kDone;
}

}  // namespace

void describe_up(CLI::App& app, UpArguments& arguments) {
  CLI::App* command = app.add_subcommand("up", "Start the peers of a plan, or apply a changed plan");
  command->add_option("PLAN.yaml", arguments.plan, "plan that tw plan wrote")->required();
  command
      ->add_option("--on", arguments.on,
                   fmt::format("{}; for some of them WHICH=ENGINE (spot=ssh)",
                               fmt::join(launch::engine_names(), ", ")))
      ->required()
      ->allow_extra_args(false);
  command->add_option("--hosts", arguments.hosts,
                      "with ssh: file with a line for each machine (docs/launch.md)");
  command->add_option("--run-file", arguments.run_file, "RUN.yaml; default: run: of the plan");
  command->add_option("--name", arguments.name,
                      "name of the run for other commands; default: that of the run file");
  command->add_option("--run", arguments.run_folder,
                      "folder of tw init whose key makes the tokens; default: a new key");
  command->add_option("--set", arguments.set, "KEY=VALUE, overrides the run file")->allow_extra_args(false);
  command->add_option("--with", arguments.with, "KEY=VALUE for the engine, or ENGINE.KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--ssh-config", arguments.ssh_config, "with ssh: file of settings; default: none");
  command->add_option("--image", arguments.image,
                      "with skypilot and k8s: container image with tw, or program.setup installs it");
  command->add_option("--program", arguments.program, "path of another tw to start; default: this one");
  command->add_option("--grace", arguments.grace, "time that a peer has to leave")->capture_default_str();
  command->add_option("--state", arguments.state, "folder of run states; default: ~/.local/state/tradewind");
  CLI::Option* keep =
      command->add_flag("--keep", arguments.keep, "stay: restart ended peers, collect logs, follow prices");
  command->add_flag("--ask", arguments.ask, "with --keep: ask before the plan changes");
  command->add_option("--every", arguments.every, "with --keep: time between two checks")
      ->capture_default_str();
  describe_market(*command, arguments.market);
  for (const char* of_keep : {"--ask", "--every", "--offers", "--catalog"})
    command->get_option(of_keep)->needs(keep);
  CLI::Option* anew =
      command->add_flag("--anew", arguments.anew,
                        "begin from round 1, and set old checkpoints aside; refused while a peer lives");
  CLI::Option* check = command->add_flag(
      "--check", arguments.check, "set the machines up and check that the program can run; start nothing");
  command->add_flag("--dry-run", arguments.dry_run, "print files and commands, without secrets; do nothing")
      ->excludes(check);
  check->excludes(anew);
  command->footer(
      "A second tw up changes nothing while all peers run, and starts those that do not. With another\n"
      "plan it adds and removes the difference. Tokens go as files of mode 0600, never on a command\n"
      "line. WHICH is owned, on-demand, spot, anchor, a provider or a site of the plan; settings and\n"
      "addresses of engines: docs/launch.md.\n"
      "\nExamples:\n"
      "  tw up PLAN.yaml --on local\n"
      "  tw up PLAN.yaml --on ssh --hosts hosts.txt\n"
      "  tw up PLAN.yaml --on owned=ssh --hosts hosts.txt --on spot=skypilot --image NAME\n"
      "  tw up PLAN.yaml --on slurm --with spot.partition=preemptible --dry-run");
}

int up(const UpArguments& arguments) {
  const auto every = interval_of(arguments);
  if (!every) return complain(every.error().message, kUsage);
  const auto request = read_request(arguments);
  if (!request) return complain(request.error().message, kUsage);
  const auto engine = launch::make_engine(request.value().engines.text());
  if (!engine) return complain(engine.error().message, kUsage);
  const int code = up_once(arguments, request.value(), *engine.value());
  if (code != kDone || !arguments.keep || arguments.dry_run || arguments.check) return code;
  return keep_run(arguments, request.value().name, every.value());
}

}  // namespace tw::cli
