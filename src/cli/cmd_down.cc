// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/result.h"
#include "base/text/number.h"
#include "base/text/option.h"
#include "base/text/quantity.h"
#include "cli/arguments/launch_arguments.h"
#include "cli/commands.h"
#include "cli/run/run_place.h"
#include "cli/run/run_progress.h"
#include "cli/terminal/terminal.h"
#include "host/system/calendar.h"
#include "launch/fleet.h"
#include "launch/restarts.h"
#include "monitor/logs/log_file.h"
#include "monitor/terminal/terminal_numbers.h"

namespace tw::cli {
namespace {

/// A run that is there, and its engine.
struct OpenRun {
  launch::RunStore store;
  std::unique_ptr<launch::Engine> engine;

  const launch::Deployment& deployment() const { return store.state().deployment; }
};

Result<OpenRun> open_run(const std::string& state, const std::string& run) {
  TW_TRY(const auto runs, runs_folder(state));
  TW_TRY(auto store, launch::RunStore::open(runs, run));
  TW_TRY(auto engine, launch::make_engine(store.state().engine));
  return OpenRun{std::move(store), std::move(engine)};
}

void describe_state(CLI::App& command, std::string& state) {
  command.add_option("--state", state, "folder of run states; default: ~/.local/state/tradewind");
}

/// Peers whose logs were collected and that no plan has any more, by number.
std::vector<launch::PeerJob> former_peers(const launch::Deployment& deployment) {
  std::vector<launch::PeerJob> former;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(deployment.folder + "/logs", none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('p') || !name.ends_with(".log")) continue;
    const auto number = parse_number<std::uint32_t>(std::string_view(name).substr(1, name.size() - 5));
    if (!number || find_peer(deployment, *number) != nullptr) continue;
    former.emplace_back().number = *number;
  }
  std::ranges::sort(former, {}, &launch::PeerJob::number);
  return former;
}

/// All of them where `text` is empty. The error names what was given as PEER.
Result<std::vector<launch::PeerJob>> chosen_peers(const launch::Deployment& deployment,
                                                  const std::string& text) {
  std::vector<launch::PeerJob> all = deployment.peers;
  std::ranges::copy(former_peers(deployment), std::back_inserter(all));
  if (text.empty()) return all;
  const std::string digits = text.starts_with('p') ? text.substr(1) : text;
  const auto number = parse_count("PEER", digits, {.least = 1, .most = UINT32_MAX});
  if (!number) return number.error();
  const auto peer = std::ranges::find(all, number.value(), &launch::PeerJob::number);
  if (peer == all.end()) return Error{fmt::format("PEER {}: run {} has no such peer", text, deployment.run)};
  return std::vector{*peer};
}

/// The collected output of a peer; empty: none.
std::string collected_log(const launch::Deployment& deployment, std::uint32_t number) {
  std::ifstream file(fmt::format("{}/logs/p{}.log", deployment.folder, number), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

void describe_down(CLI::App& app, DownArguments& arguments) {
  CLI::App* command = app.add_subcommand("down", "Stop the peers of a run that tw up started");
  command->add_option("RUN", arguments.run, "name of the run")->required();
  describe_state(*command, arguments.state);
  command->footer(
      "Peers hand in what is done and leave within the grace of tw up; then they are killed. Logs and\n"
      "checkpoints stay, tokens on other machines go. A tw up --keep of this run ends too. tw up starts\n"
      "the run again.\n"
      "\nExamples:\n  tw down mnist");
}

namespace {

/// A run that ended by itself is not stopped by what is taken away after it. Where that takes its end away,
/// too (Jobs of Kubernetes), tw up --keep would start it again. before: what it was when tw down began.
launch::StopState stop_after(const OpenRun& run, launch::StopState before) {
  const auto reports = ask(*run.engine, run.deployment());
  const bool is_complete = reports && launch::end_of(reports.value()) == launch::RunEnd::complete;
  const bool was_stopped = before == launch::StopState::stopped;
  return is_complete && !was_stopped ? launch::StopState::none : launch::StopState::stopped;
}

std::string logs_text(const launch::Deployment& deployment) {
  std::error_code none;
  const std::string folder = deployment.folder + "/logs";
  return std::filesystem::exists(folder, none) ? "; logs: " + folder : "";
}

}  // namespace

int down(const DownArguments& arguments) {
  auto run = open_run(arguments.state, arguments.run);
  if (!run) return complain(run.error().message, kUsage);
  launch::RunState state = run.value().store.state();
  const launch::StopState before = state.stop;
  state.stop = launch::StopState::stopping;  // before any peer ends: tw up --keep would start it again
  state.deployment.user.env.clear();         // secrets; tw up reads them anew
  if (const Status saved = run.value().store.save(state); !saved)
    return complain(saved.error().message, kFailed);
  const launch::Deployment& deployment = run.value().deployment();
  int code = kDone;
  const auto is_done = [&](launch::Action action) {
    const Duration at_least = action == launch::Action::collect ? launch::kOutputLimit : Duration{};
    const Status done = perform(*run.value().engine, action, deployment, deployment.peers, at_least);
    if (!done) code = complain(done.error().message, kFailed);
    return done.ok();
  };
  const bool all_ended = is_done(launch::Action::stop);
  is_done(launch::Action::collect);
  if (!all_ended)
    return complain(
        fmt::format("run {} may live yet: {}; where you know that no peer of it lives, remove {}, with its "
                    "logs and checkpoints",
                    deployment.run, command_for("down", deployment.run, arguments.state), deployment.folder),
        kFailed);
  is_done(launch::Action::remove);
  state.stop = stop_after(run.value(), before);
  mark_started(state.deployment, deployment.peers, 0);
  if (const Status saved = run.value().store.save(std::move(state)); !saved)
    code = complain(saved.error().message, kFailed);
  if (code == kDone) print_out("run {} is down{}\n", deployment.run, logs_text(deployment));
  return code;
}

void describe_status(CLI::App& app, StatusArguments& arguments) {
  CLI::App* command = app.add_subcommand("status", "Show the state of a run's peers");
  command->add_option("RUN", arguments.run, "name of the run; default: lists the runs");
  command->add_flag("--json", arguments.json, "print one JSON object instead of a table");
  describe_state(*command, arguments.state);
  command->footer(
      "States: unknown (cannot be asked, or has a state that tw does not know), absent, waiting, running,\n"
      "leaving, left (75: it comes back), done (0: the run is complete), failed.\n"
      "Exit code 1: the run has ended, and a peer with 2, which is not started again.\n"
      "\nExamples:\n  tw status mnist\n  tw status mnist --json | jq .peers");
}

namespace {

/// Beside the name of a run in the list.
std::string note_on(const std::string& folder, const std::string& run, const std::string& state) {
  switch (launch::stop_state_of(folder, run)) {
    case launch::StopState::stopped:
      return "stopped by tw down";
    case launch::StopState::stopping:
      return "stopping, peers may live: " + command_for("down", run, state);
    case launch::StopState::none:
      break;
  }
  return command_for("status", run, state);
}

int list_runs(const StatusArguments& arguments) {
  const auto found = runs_folder(arguments.state);
  if (!found) return complain(found.error().message, kUsage);
  const std::string& folder = found.value();
  const std::vector<std::string> runs = launch::runs_in(folder);
  if (arguments.json) {
    print_out("{}", json_of_runs(runs));
    return kDone;
  }
  if (runs.empty()) print_out("no run in {}: tw up starts one\n", folder);
  for (const std::string& run : runs) print_out("{:<24}{}\n", run, note_on(folder, run, arguments.state));
  return kDone;
}

}  // namespace

int status(const StatusArguments& arguments) {
  if (arguments.run.empty()) return list_runs(arguments);
  const auto run = open_run(arguments.state, arguments.run);
  if (!run) return complain(run.error().message, kUsage);
  const launch::Deployment& deployment = run.value().deployment();
  const auto reports = ask(*run.value().engine, deployment);
  if (!reports) return complain(reports.error().message, kFailed);
  const Status collected = perform(*run.value().engine, launch::Action::collect, deployment,
                                   known_peers(deployment.peers, reports.value()));
  if (!collected) warn(collected.error().message);
  const auto progress = progress_in(deployment.folder + "/logs", host::now_unix_s());
  std::error_code none;
  if (!progress && !monitor::logs_in_folder(deployment.folder + "/logs", none).empty())
    warn("progress is not known: " + progress.error().message);
  const plan::RunProgress known = progress ? progress.value() : plan::RunProgress{};
  const launch::RunState& state = run.value().store.state();
  print_out("{}", arguments.json ? json_of(state, reports.value(), known) : table_of(state, reports.value()));
  if (!arguments.json && known.samples > 0)
    print_out("\n{} samples, {} samples/s over the last ten rounds, {} losses; more: tw report {}/logs\n",
              grouped(static_cast<std::uint64_t>(known.samples)), monitor::rate_text(known.samples_per_s),
              known.losses, deployment.folder);
  if (launch::end_of(reports.value()) != launch::RunEnd::needs_person) return kDone;
  return complain(need_of(state, reports.value(), arguments.state), kFailed);
}

void describe_logs(CLI::App& app, LogsArguments& arguments) {
  CLI::App* command = app.add_subcommand("logs", "Print the output of a run's peers");
  command->add_option("RUN", arguments.run, "name of the run")->required();
  command->add_option("PEER", arguments.peer, "p1 or 1; default: all");
  describe_state(*command, arguments.state);
  command->footer("\nExamples:\n  tw logs mnist\n  tw logs mnist p3");
}

int logs(const LogsArguments& arguments) {
  const auto run = open_run(arguments.state, arguments.run);
  if (!run) return complain(run.error().message, kUsage);
  const launch::Deployment& deployment = run.value().deployment();
  const auto peers = chosen_peers(deployment, arguments.peer);
  if (!peers) return complain(peers.error().message, kUsage);
  const launch::Engine& engine = *run.value().engine;
  std::vector<launch::PeerJob> there = peers.value();
  std::erase_if(there, [&](const auto& peer) { return find_peer(deployment, peer.number) == nullptr; });
  const Status collected = perform(engine, launch::Action::collect, deployment, there, launch::kOutputLimit);
  if (!collected) warn(collected.error().message);
  for (const launch::PeerJob& peer : peers.value()) {
    const bool is_there = find_peer(deployment, peer.number) != nullptr;
    const launch::Batch batch =
        is_there ? run_all(engine.commands(launch::Action::logs, deployment, {peer})) : launch::Batch{};
    std::string text = batch.failures.empty() && !batch.outputs.empty()
                           ? batch.outputs.front().text
                           : collected_log(deployment, peer.number);
    if (!batch.failures.empty())
      warn(fmt::format("{}; this is what was collected of {}", batch.failures.front().message,
                       short_name(peer)));
    if (text.empty()) text = "(it printed nothing yet)\n";
    if (peers.value().size() > 1) print_out("==> {} <==\n", short_name(peer));
    print_out_text(text);
  }
  return kDone;
}

}  // namespace tw::cli
