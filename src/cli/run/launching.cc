// SPDX-License-Identifier: Apache-2.0
#include "cli/run/launching.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/run/run_place.h"
#include "cli/terminal/terminal.h"
#include "host/system/calendar.h"
#include "launch/command_run.h"
#include "launch/fleet.h"
#include "launch/restarts.h"
#include "launch/user_program.h"

namespace tw::cli {
namespace {

/// The steps of `tw up`.
struct Steps {
  std::vector<launch::PeerJob> start, stop;
  std::vector<launch::PeerJob> coming;  ///< those wanted, without the ones that stay away
  bool complete = false;                ///< a peer ended with 0: the run is over
  std::string need{};                   ///< then: what a person has to look at
};

/// What a peer that starts knows: nobody waits for one that stays away.
launch::Deployment with_coming(launch::Deployment wanted, const Steps& steps) {
  wanted.peers = steps.coming;
  return wanted;
}

/// The difference between what runs and what is to run. Sets `begun` and `founder`. state: --state.
Result<Steps> steps_for(const launch::Engine& engine, const launch::RunStore& store,
                        launch::Deployment& wanted, Launcher launcher, const std::string& state) {
  const auto difference = launch::difference(store.state().deployment.peers, wanted.peers);
  Steps steps{.start = difference.add, .stop = difference.drop, .coming = wanted.peers};
  if (!store.has_state()) return steps;
  launch::Deployment before = store.state().deployment;
  before.on = wanted.on;  // for the engines as they are named now
  TW_TRY(const auto reports, launch::ask(engine, before));
  const bool was_stopped = store.state().stop == launch::StopState::stopped;
  const auto lives = [&](const launch::PeerReport& report) {
    return launch::may_live(report.state) && !(was_stopped && report.state == launch::PeerState::unknown);
  };
  for (const launch::PeerReport& report : reports) {
    wanted.begun = wanted.begun || lives(report);
    steps.complete = steps.complete || report.state == launch::PeerState::done;
  }
  if (steps.complete && launch::end_of(reports) == launch::RunEnd::needs_person)
    steps.need = need_of(store.state(), reports, state);
  if (launcher == Launcher::keeper) steps.coming = launch::coming_peers(wanted.peers, reports);
  wanted.founder = launch::next_founder(wanted, steps.coming);
  for (const launch::PeerJob& peer : difference.keep) {
    const launch::PeerReport report = launch::report_of(reports, peer.number);
    if (!lives(report) && has_peer(steps.coming, peer.number)) steps.start.push_back(peer);
    if (report.state == launch::PeerState::waiting && !report.detail.empty())
      show_aside(fmt::format("{}: {}; not started again", short_name(peer), report.detail));
    if (lives(report) && report.state == launch::PeerState::unknown)
      warn(
          fmt::format("{} is unknown: {}; it may live, and is not started", short_name(peer), report.detail));
  }
  std::ranges::sort(steps.start, {}, &launch::PeerJob::number);
  return steps;
}

void show(const launch::Command& command) {
  print_out("{}\n", to_line(command));
  if (command.input.empty()) return;
  print_out("{}\n", command.input_is_secret ? "  (a secret on its stdin)" : command.input);
}

void show_plan(const launch::Engine& engine, const launch::Deployment& wanted, const Steps& steps) {
  for (const launch::File& file : engine.files(wanted)) {
    print_out("# {}/{} (mode {:o})\n", wanted.folder, file.path, file.mode);
    print_out("{}\n", (file.mode & 0077) == 0 ? "(a secret)\n" : file.text);
  }
  using launch::Action;
  for (const auto& [action, peers] :
       {std::pair{Action::prepare, &steps.start}, {Action::start, &steps.start}, {Action::stop, &steps.stop}})
    if (!peers->empty())
      for (const launch::Command& command : engine.commands(action, wanted, *peers)) show(command);
}

/// A peer that was started stays with its engine; engines of others may change.
Status check_engine(const LaunchRequest& request, const launch::RunStore& store, const std::string& state) {
  const std::vector<launch::PeerJob>& peers = store.state().deployment.peers;
  if (peers.empty()) return request.engines.check(request.plan.peers);
  TW_TRY(const auto before, launch::EngineChoice::parse({store.state().engine}));
  const std::string on = request.engines.text();
  const auto stays = [&](const launch::PeerJob& peer) {
    return peer.untried || request.engines.engine_of(peer) == before.engine_of(peer);
  };
  if (std::ranges::all_of(peers, stays)) return Unit{};
  const bool is_over = store.state().stop == launch::StopState::stopped;
  const std::string end = is_over
                              ? "this one goes with its folder, " + store.folder()
                              : command_for("down", store.state().deployment.run, state) + " ends this one";
  return Error{
      fmt::format("--on {}: this run is on {}; --name makes another run, {}", on, store.state().engine, end)};
}

/// A run that goes on turns away peers with another run file.
Status check_run_file(const launch::Deployment& runs, const launch::Deployment& wanted,
                      const std::string& state) {
  if (!wanted.begun) return Unit{};
  const std::string remedy = command_for("down", wanted.run, state) + " first, or leave it as it was";
  if (runs.run_file != wanted.run_file)
    return Error{fmt::format("run {} goes on with another run file ({}/run.yaml); {}", wanted.run,
                             runs.folder, remedy)};
  for (const std::string& setting : wanted.settings)
    if (std::ranges::find(runs.settings, setting) == runs.settings.end())
      return Error{fmt::format("--set {}: run {} goes on without it; {}", setting, wanted.run, remedy)};
  for (const std::string& setting : runs.settings)
    if (std::ranges::find(wanted.settings, setting) == wanted.settings.end())
      return Error{
          fmt::format("run {} goes on with --set {}, which is missing; {}", wanted.run, setting, remedy)};
  return Unit{};
}

/// --anew: a peer that lives goes on with what there is.
Status check_anew(const launch::Deployment& wanted, const std::string& state) {
  if (!wanted.anew || !wanted.begun) return Unit{};
  return Error{fmt::format("--anew: a peer of run {} lives, or may; {} first", wanted.run,
                           command_for("down", wanted.run, state))};
}

/// has_peers: the state names some, which may have tokens.
Status give_tokens(const UpArguments& arguments, bool has_peers, launch::Deployment& wanted) {
  const bool is_own = arguments.run_folder.empty();
  const NewKey own_key = has_peers ? NewKey::if_none : NewKey::if_none_whole;
  TW_TRY(const auto tokens,
         make_tokens(is_own ? wanted.folder : arguments.run_folder, wanted.run,
                     is_own ? own_key : NewKey::never, command_for("down", wanted.run, arguments.state)));
  wanted.token = tokens.peer;
  wanted.anchor_token = tokens.anchor;
  return Unit{};
}

/// Another home= is not that of peers which have their files elsewhere: without those they would begin anew.
void warn_of_homes(const LaunchRequest& request, const std::vector<launch::PeerJob>& peers) {
  for (const launch::PeerJob& peer : peers) {
    const auto line = std::ranges::find(request.hosts, peer.host, &launch::Host::ssh);
    if (peer.untried || line == request.hosts.end() || line->home == peer.home) continue;
    const auto text = [](const std::string& home) { return home.empty() ? "~/.tradewind" : home; };
    warn(fmt::format("--hosts: {} on {} stays in {}, where its checkpoints are; home={} is for new peers",
                     short_name(peer), peer.host, text(peer.home), text(line->home)));
  }
}

launch::RunState without_tokens(launch::RunState state) {
  state.deployment.token.clear();
  state.deployment.anchor_token.clear();
  return state;
}

Status stage_program(const LaunchRequest& request, const launch::Deployment& deployment) {
  const std::string from = std::filesystem::path(request.run_file).parent_path().string();
  return launch::stage(deployment.user, from, deployment.folder);
}

/// Saves the state before any peer starts, so that no started peer is forgotten. Peers to be stopped stay in
/// the run until they have stopped, and their plan stays the present one.
Status write_down(const UpArguments& arguments, const launch::Engine& engine, launch::RunState& state,
                  const Steps& steps, launch::RunStore& store) {
  if (!steps.start.empty()) {
    const bool has_peers = !store.state().deployment.peers.empty();
    if (const Status given = give_tokens(arguments, has_peers, state.deployment); !given) return given;
    if (const Status written = store.write(engine.files(with_coming(state.deployment, steps))); !written)
      return written;
  }
  launch::RunState kept = without_tokens(state);
  if (steps.start.empty()) kept.deployment.user = store.state().deployment.user;  // whose files are staged
  if (!steps.stop.empty()) {
    auto& peers = kept.deployment.peers;
    peers.insert(peers.end(), steps.stop.begin(), steps.stop.end());
    std::ranges::sort(peers, {}, &launch::PeerJob::number);
    kept.plan_file = store.state().plan_file;
    kept.job_file = store.state().job_file;
  }
  return store.save(std::move(kept));
}

/// Those that are new first: a run never has fewer peers than it needs to. Those that stop are forgotten once
/// they have.
Launched take(const launch::Engine& engine, const launch::RunState& state, const Steps& steps,
              launch::RunStore& store) {
  Launched launched;
  const launch::Deployment& wanted = state.deployment;
  const auto is_done = [&](const Status& done) {
    if (!done) launched.trouble += (launched.trouble.empty() ? "" : "\n") + done.error().message;
    return done.ok();
  };
  const launch::Started started = start_marked(engine, store, with_coming(wanted, steps), steps.start);
  launched.started = started.peers;
  launched.trouble = started.trouble;
  if (!launched.trouble.empty()) return launched;
  if (steps.stop.empty() || !is_done(launch::perform(engine, launch::Action::stop, wanted, steps.stop)))
    return launched;
  launched.stopped = steps.stop;
  launch::RunState after = without_tokens(state);
  after.deployment.founder = store.state().deployment.founder;
  for (launch::PeerJob& peer : after.deployment.peers)
    if (const launch::PeerJob* now = find_peer(store.state().deployment, peer.number); now != nullptr) {
      peer.started_unix_s = now->started_unix_s;
      peer.starts = now->starts;
      peer.untried = now->untried;
    }
  is_done(store.save(std::move(after)));
  for (const launch::Action action : {launch::Action::collect, launch::Action::remove})
    is_done(launch::perform(engine, action, wanted, steps.stop));
  return launched;
}

/// Leaves a state without peers, so that the folder is known to be of this run.
Launched check_machines(const LaunchRequest& request, const launch::Engine& engine,
                        const launch::RunState& state, launch::RunStore& store) {
  launch::RunState checked = state;
  if (!store.has_state()) {
    checked.deployment.peers.clear();
    checked.next_number = 1;
    if (const Status saved = store.save(std::move(checked)); !saved)
      return {.trouble = saved.error().message};
  }
  const launch::Deployment& wanted = state.deployment;
  if (const Status staged = stage_program(request, wanted); !staged)
    return {.trouble = staged.error().message};
  // Files of peers that run stay as they are.
  std::vector<launch::File> files = engine.files(wanted);
  std::erase_if(files, [](const launch::File& file) { return !file.path.ends_with("/env"); });
  if (const Status written = store.write(files); !written) return {.trouble = written.error().message};
  const auto checks_of = [&](const std::vector<launch::PeerJob>& peers) {
    return engine.commands(launch::Action::check, wanted, peers);
  };
  std::string trouble;
  for (const auto& failure : launch::run_all(checks_of(wanted.peers)).failures)
    trouble += (trouble.empty() ? "" : "\n") + failure.message;
  if (!trouble.empty()) return {.trouble = trouble};
  std::vector<launch::PeerJob> ready, unseen;
  for (const launch::PeerJob& peer : wanted.peers)
    (checks_of({peer}).empty() ? unseen : ready).push_back(peer);
  if (!ready.empty()) print_out("{}: ready\n", names_of(ready));
  if (!unseen.empty())
    print_out("{}: files and settings are right; only the machines know whether the program can run\n",
              names_of(unseen));
  return {};
}

}  // namespace

Launched launch_run(const UpArguments& arguments, const LaunchRequest& request, const launch::Engine& engine,
                    launch::RunStore& store, Launcher launcher) {
  const auto refuse = [](const Error& error) { return Launched{.trouble = error.message, .refused = true}; };
  const auto fail = [](const Error& error) { return Launched{.trouble = error.message}; };
  if (const Status fits = check_engine(request, store, arguments.state); !fits) return refuse(fits.error());
  auto state = wanted_state(arguments, request, store);
  if (!state) return refuse(state.error());
  launch::Deployment& wanted = state.value().deployment;
  wanted.anew = arguments.anew;
  if (const Status fits = engine.check(wanted); !fits) return refuse(fits.error());
  if (launcher == Launcher::person) warn_of_homes(request, wanted.peers);
  const auto steps = steps_for(engine, store, wanted, launcher, arguments.state);
  if (!steps) return fail(steps.error());
  if (steps.value().complete && (!wanted.anew || wanted.begun))
    return {.trouble = steps.value().need, .complete = true};
  if (const Status alone = check_anew(wanted, arguments.state); !alone) return refuse(alone.error());
  if (const Status same = check_run_file(store.state().deployment, wanted, arguments.state); !same)
    return refuse(same.error());
  if (arguments.check && wanted.begun)
    return refuse(Error{fmt::format(
        "--check: peers of run {} live, and use the program in {}/program; {} first, or check under another "
        "--name",
        wanted.run, wanted.folder, command_for("down", wanted.run, arguments.state))});
  if (arguments.check) return check_machines(request, engine, state.value(), store);
  if (arguments.dry_run) {
    show_plan(engine, wanted, steps.value());
    return {};
  }
  if (const Status written = write_down(arguments, engine, state.value(), steps.value(), store); !written)
    return fail(written.error());
  if (!steps.value().start.empty())
    if (const Status staged = stage_program(request, wanted); !staged) return fail(staged.error());
  return take(engine, state.value(), steps.value(), store);
}

launch::Started start_marked(const launch::Engine& engine, launch::RunStore& store,
                             const launch::Deployment& deployment,
                             const std::vector<launch::PeerJob>& peers) {
  // One whose host is out of reach begins nothing.
  const auto mark = [&](const launch::Deployment& ready, const std::vector<launch::PeerJob>& these) {
    launch::RunState state = store.state();
    mark_started(state.deployment, these, host::now_unix_s());
    for (const launch::PeerJob& peer : these)
      if (start_of(ready, peer) == launch::Start::begin) state.deployment.founder = peer.number;
    return store.save(std::move(state));
  };
  const std::vector<launch::PeerJob> before = store.state().deployment.peers;
  launch::Started started = launch::start(engine, deployment, peers, mark);
  std::vector<launch::PeerJob> failed;
  std::ranges::copy_if(peers, std::back_inserter(failed), [&](const launch::PeerJob& peer) {
    return !has_peer(started.peers, peer.number) && !has_peer(started.uncertain, peer.number);
  });
  if (failed.empty()) return started;
  launch::RunState state = store.state();
  mark_started(state.deployment, failed, 0);
  for (launch::PeerJob& peer : state.deployment.peers) {
    const auto was = std::ranges::find(before, peer.number, &launch::PeerJob::number);
    if (has_peer(started.in_vain, peer.number) && was != before.end()) peer.untried = was->untried;
  }
  if (const Status saved = store.save(std::move(state)); !saved)
    started.trouble += (started.trouble.empty() ? "" : "\n") + saved.error().message;
  return started;
}

std::string names_of(const std::vector<launch::PeerJob>& peers) {
  std::vector<std::string> names;
  for (const launch::PeerJob& peer : peers) names.push_back(launch::short_name(peer));
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace tw::cli
