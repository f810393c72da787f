// SPDX-License-Identifier: Apache-2.0
#include "cli/run/keep.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "base/result.h"
#include "base/text/duration.h"
#include "base/text/text_file.h"
#include "cli/commands.h"
#include "cli/plan/launch_plan.h"
#include "cli/plan/replan_now.h"
#include "cli/run/keep_steps.h"
#include "cli/run/launching.h"
#include "cli/run/leavers.h"
#include "cli/run/run_place.h"
#include "cli/terminal/terminal.h"
#include "host/loop.h"
#include "launch/asked.h"
#include "launch/fleet.h"
#include "launch/held_signals.h"
#include "launch/restarts.h"
#include "plan/advise/plan_change.h"

namespace tw::cli {
namespace {

constexpr Duration kCollectEvery = std::chrono::seconds(60);
constexpr Duration kReplanEvery = std::chrono::minutes(5);

bool is_yes(const std::string& answer) { return answer == "y" || answer == "yes"; }

class Keeper {
 public:
  Keeper(UpArguments arguments, std::string run, Duration every)
      : arguments_(std::move(arguments)), run_(std::move(run)), every_(every) {}

  int run() {
    loop_.on_signal([this](int) {
      show_news("no longer watching; the peers go on: " + command_for("status", run_, arguments_.state));
      loop_.stop();
    });
    show_news(
        fmt::format("watching every {:g} s; Ctrl-C ends this, and the peers go on", to_seconds(every_)));
    collect_at_ = loop_.now() + kCollectEvery;
    replan_at_ = loop_.now() + kReplanEvery;
    look();
    loop_.run();
    return code_;
  }

 private:
  /// A signal that comes meanwhile ends the commands under way and starts nothing new; then it ends this.
  void look() {
    held_.emplace();
    const bool goes_on = look_now();
    held_.reset();
    if (goes_on)
      loop_.at(loop_.now() + every_, [this] { look(); });
    else
      loop_.stop();
  }

  /// The state is read anew each time: other commands may have changed the run, or be at work on it. False:
  /// this was the last look.
  bool look_now() {
    const auto found = runs_folder(arguments_.state);
    if (!found) return give_up(found.error());
    const std::string& runs = found.value();
    if (const auto stop = launch::stop_state_of(runs, run_); stop != launch::StopState::none)
      return end_as_stopped(stop);
    auto store = launch::RunStore::open_if_free(runs, run_);
    if (!store) return give_up(store.error());
    if (!store.value()) return true;
    launch::RunStore& free = *store.value();
    if (free.state().stop != launch::StopState::none) return end_as_stopped(free.state().stop);
    const auto engine = launch::make_engine(free.state().engine);
    if (!engine) return give_up(engine.error());
    return !look_at(*engine.value(), free);
  }

  static bool is_interrupted() { return launch::HeldEndSignals::came(); }

  /// True: the run is over.
  bool look_at(const launch::Engine& engine, launch::RunStore& store) {
    const launch::Deployment& deployment = store.state().deployment;
    const auto reports = launch::ask(engine, deployment);
    if (!reports) {
      warn(reports.error().message);
      return false;
    }
    if (const launch::RunEnd end = launch::end_of(reports.value()); end != launch::RunEnd::none)
      return finish(engine, store.state(), reports.value(), end);
    const auto condemned = launch::last_anchor_that_goes(deployment, reports.value());
    if (condemned != 0 && !is_interrupted()) replace_anchor(engine, store, condemned);
    leavers_.look(engine, deployment, loop_.now());
    asked_.look(deployment, reports.value(), loop_.now());
    collect_changed(engine, deployment, reports.value());
    if (is_interrupted()) return false;
    hurry(engine, deployment, reports.value());
    if (is_interrupted()) return false;
    restart(engine, store, reports.value());
    if (loop_.now() >= collect_at_) collect_all(engine, deployment, reports.value());
    if (loop_.now() >= replan_at_ && !is_interrupted()) replan(engine, store);
    return false;
  }

  bool finish(const launch::Engine& engine, const launch::RunState& state,
              const std::vector<launch::PeerReport>& reports, launch::RunEnd end) {
    collect_all(engine, state.deployment, reports);
    if (end == launch::RunEnd::needs_person)
      code_ = complain(need_of(state, reports, arguments_.state), kFailed);
    else
      show_news(fmt::format("run {} is complete; tw report {}/logs", run_, state.deployment.folder));
    return true;
  }

  bool end_as_stopped(launch::StopState stop) {
    show_news(stop == launch::StopState::stopped
                  ? fmt::format("run {} was stopped by tw down", run_)
                  : fmt::format("tw down stops run {}, and its peers may live yet", run_));
    return false;
  }

  bool give_up(const Error& error) {
    code_ = complain(error.message, kFailed);
    return false;
  }

  /// Restarts peers if the engine does not. Once a peer is done, none is restarted.
  void restart(const launch::Engine& engine, launch::RunStore& store,
               const std::vector<launch::PeerReport>& reports) {
    launch::RunState state = store.state();
    const auto is_done = [](const launch::PeerReport& one) { return one.state == launch::PeerState::done; };
    if (std::ranges::any_of(reports, is_done)) return;
    std::vector<launch::PeerJob> due;
    for (const std::uint32_t number :
         restarts_.step(loop_.now(), seen_by_the_rules(engine, state.deployment, reports))) {
      const launch::PeerReport report = launch::report_of(reports, number);
      const auto peer = std::ranges::find(state.deployment.peers, number, &launch::PeerJob::number);
      if (!peer->untried) ++peer->restart;
      due.push_back(*peer);
      show_news(peer->untried ? fmt::format("p{} was not started yet: tried again", number)
                              : fmt::format("p{} {}: started again", number, state_text(report)));
    }
    if (due.empty()) return;
    start_due(engine, store, std::move(state), due, reports);
  }

  /// Nobody waits for peers that stay away until a person has looked.
  void start_due(const launch::Engine& engine, launch::RunStore& store, launch::RunState state,
                 const std::vector<launch::PeerJob>& due, const std::vector<launch::PeerReport>& reports) {
    launch::Deployment& deployment = state.deployment;
    deployment.begun = std::ranges::any_of(
        reports, [](const launch::PeerReport& one) { return launch::may_live(one.state); });
    auto coming = launch::coming_peers(deployment.peers, reports);
    deployment.founder = launch::next_founder(deployment, coming);
    if (const Status saved = store.save(state); !saved) return warn(saved.error().message);
    deployment.peers = std::move(coming);
    if (const Status started = start_again(engine, store, deployment, due); !started)
      warn(started.error().message);
  }

  Status start_again(const launch::Engine& engine, launch::RunStore& store, launch::Deployment& deployment,
                     const std::vector<launch::PeerJob>& due) {
    const std::string keys = arguments_.run_folder.empty() ? deployment.folder : arguments_.run_folder;
    TW_TRY(const auto tokens,
           make_tokens(keys, deployment.run, NewKey::never, command_for("down", run_, arguments_.state)));
    deployment.token = tokens.peer;
    deployment.anchor_token = tokens.anchor;
    if (const Status written = store.write(engine.files(deployment)); !written) return written;
    const launch::Started started = start_marked(engine, store, deployment, due);
    return started.trouble.empty() ? Status(Unit{}) : Status(Error{started.trouble});
  }

  /// Peers that came back to the queue of the engine, which would let them wait; once for each return.
  void hurry(const launch::Engine& engine, const launch::Deployment& deployment,
             const std::vector<launch::PeerReport>& reports) {
    std::vector<launch::PeerJob> waiting;
    for (const launch::PeerJob& peer : deployment.peers) {
      const launch::PeerReport report = launch::report_of(reports, peer.number);
      if (!engine.restarts(peer) || report.state != launch::PeerState::waiting || report.restarts == 0)
        continue;
      if (report.exit_code == launch::kNeedsPerson) continue;  // until a person has looked
      std::uint32_t& hurried = hurried_[peer.number];
      if (hurried < report.restarts) waiting.push_back(peer);
      hurried = report.restarts;
    }
    if (waiting.empty()) return;
    collect(engine, deployment, waiting);  // what ended may go with its output
    if (const Status done = launch::perform(engine, launch::Action::hurry, deployment, waiting); !done)
      warn(done.error().message);
  }

  void collect_all(const launch::Engine& engine, const launch::Deployment& deployment,
                   const std::vector<launch::PeerReport>& reports) {
    collect_at_ = loop_.now() + kCollectEvery;
    collect(engine, deployment, launch::known_peers(deployment.peers, reports));
  }

  static void collect(const launch::Engine& engine, const launch::Deployment& deployment,
                      const std::vector<launch::PeerJob>& peers) {
    const Status done = launch::perform(engine, launch::Action::collect, deployment, peers);
    if (!done) warn(done.error().message);
  }

  /// The machine of a peer that is leaving or has ended may be gone a minute later.
  void collect_changed(const launch::Engine& engine, const launch::Deployment& deployment,
                       const std::vector<launch::PeerReport>& reports) {
    std::vector<launch::PeerJob> changed;
    for (const launch::PeerJob& peer : deployment.peers) {
      const launch::PeerState state = launch::report_of(reports, peer.number).state;
      launch::PeerState& seen = seen_[peer.number];
      const bool goes = state == launch::PeerState::leaving || !launch::may_live(state);
      if (goes && state != seen) changed.push_back(peer);
      seen = state;
    }
    if (changed.empty()) return;
    // The survivors' logs say what was lost where: the plan is judged again at the next look.
    collect_at_ = loop_.now();
    replan_at_ = std::min(replan_at_, loop_.now() + every_);
    collect(engine, deployment, changed);
  }

  /// The same plan without this peer: its replacement has another number and another host. It leaves by
  /// itself.
  void replace_anchor(const launch::Engine& engine, launch::RunStore& store, std::uint32_t number) {
    launch::RunState state = store.state();
    launch::Deployment& deployment = state.deployment;
    const launch::PeerJob gone = *find_peer(deployment, number);
    std::erase(deployment.peers, gone);
    const std::string notice = fmt::format("p{}, the last anchor, has a notice", number);
    const auto added = in_place_of(arguments_, gone, state);
    if (!added) return warn_once(notice + ", and there is no replacement: " + added.error().message);
    show_news(fmt::format("{}: {} takes its place", notice, names_of(added.value())));
    for (const launch::PeerJob& peer : added.value()) {
      deployment.peers.push_back(peer);
      state.next_number = std::max(state.next_number, peer.number + 1);
    }
    deployment.begun = true;
    if (const Status saved = store.save(state); !saved) return warn(saved.error().message);
    if (const Status started = start_again(engine, store, deployment, added.value()); !started)
      warn(started.error().message);
    leavers_.add(engine, deployment, gone, loop_.now());
  }

  /// Lasting errors come back at every check.
  void warn_once(const std::string& message) {
    if (message != last_warning_) warn(message);
    last_warning_ = message;
  }

  void replan(const launch::Engine& engine, launch::RunStore& store) {
    replan_at_ = loop_.now() + kReplanEvery;
    const launch::RunState& state = store.state();
    if (state.job_file.empty()) return;
    const auto next = replan_now({.plan = state.plan_file,
                                  .logs = state.deployment.folder + "/logs",
                                  .sources = {.market = arguments_.market},
                                  .asked = asked_.unanswered(loop_.now())})
                          .replan;
    if (!next) return warn(next.error().message);
    show_news(fmt::format("plan: {}: {}", plan::to_string(next.value().advice), next.value().reason));
    if (next.value().add.empty() && next.value().drop.empty()) return;
    if (const Status done = change_plan(engine, store, next.value()); !done) warn(done.error().message);
  }

  Status change_plan(const launch::Engine& engine, launch::RunStore& store, const plan::Replan& next) {
    const launch::RunState& state = store.state();
    TW_TRY(const auto text, read_text_file(state.plan_file));
    TW_TRY(auto old, plan::read_plan(state.plan_file, text));
    show_news(plan::to_text(next));
    if (arguments_.ask && !may_change()) return Unit{};
    TW_TRY(const auto request, read_request(arguments_));
    plan::PlanFile plan = plan::changed(std::move(old), next);
    plan.run = request.run_file;
    plan.job = state.job_file;
    UpArguments arguments = arguments_;
    arguments.plan = next_plan_file(state.deployment.folder);
    if (const Status written = launch::write_with_folder(arguments.plan, to_text(plan), 0644); !written)
      return written;
    TW_TRY(auto changed, read_request(arguments));
    const Launched launched = launch_run(arguments, changed, engine, store, Launcher::keeper);
    if (!launched.trouble.empty()) return Error{launched.trouble};
    arguments_.plan = arguments.plan;
    show_news(fmt::format("started {}; stopped {}", names_of(launched.started), names_of(launched.stopped)));
    return Unit{};
  }

  /// A signal ends the question at once.
  bool may_change() {
    show_news("change the plan? yes or no:");
    std::string answer;
    held_.reset();
    std::getline(std::cin, answer);
    held_.emplace();
    return is_yes(answer);
  }

  UpArguments arguments_;
  std::string run_;
  Duration every_;
  host::Loop loop_;
  std::optional<launch::HeldEndSignals> held_;  ///< during a look
  launch::Restarts restarts_;
  Leavers leavers_;
  launch::Asked asked_;
  std::string last_warning_;
  std::map<std::uint32_t, std::uint32_t> hurried_;   ///< restarts by the engine, by peer
  std::map<std::uint32_t, launch::PeerState> seen_;  ///< at the last look
  Instant collect_at_{};
  Instant replan_at_{};
  int code_ = kDone;
};

}  // namespace

Result<Duration> interval_of(const UpArguments& arguments) {
  const auto every = parse_duration(arguments.every);
  if (!every || *every < std::chrono::seconds(1))
    return Error{fmt::format("--every {}: expected {}, from 1s", arguments.every, kDurationWords)};
  return *every;
}

int keep_run(const UpArguments& arguments, const std::string& run, Duration every) {
  UpArguments same = arguments;
  same.name = run;
  same.anew = false;
  return Keeper(same, run, every).run();
}

}  // namespace tw::cli
