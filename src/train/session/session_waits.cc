// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "train/session/session_machine.h"

namespace tw::train {

using swarm::Wait;

// A checkpoint is written beside other work: the session waits for it only after the last round.
Wait Session::Machine::own_work() const {
  const auto away_since = [this](Instant since) {
    const Duration away = doors_.clock.now() - since;
    return Wait{.kind = Wait::Kind::away, .done = static_cast<std::uint64_t>(to_seconds(away))};
  };
  Wait wait = waits_.compute().current();
  if (worker_.jobs(Worker::State::away) > 0) wait = away_since(waits_.compute().since());
  const bool disk_counts = departure_.has_last_jobs() || !swarm_->head();
  if (wait.kind == Wait::Kind::nothing && disk_counts) wait = waits_.disk().current();
  if (wait.kind == Wait::Kind::nothing && worker_.paused_since()) wait = away_since(*worker_.paused_since());
  return wait;
}

// Its own work comes first, except work that it does while others average.
Wait Session::Machine::waiting() const {
  const bool returns = search_.return_wait().stage() == ReturnWait::Stage::waiting;
  if (const auto heir = search_.held().awaited(); heir && returns) return {Wait::Kind::source, {*heir}};
  if (Wait others = search_.return_wait().waiting(doors_.clock.now()); others.kind != Wait::Kind::nothing)
    return others;
  if (replica_.is_catching_up()) return wait_for_state();
  const Wait own = own_work();
  const bool averages = averager_.plan(step_) != nullptr;
  const bool works = own.kind != Wait::Kind::nothing;
  if (works && (!averages || own.kind == Wait::Kind::computing)) return own;
  if (averages && !averager_.complete(step_)) {
    if (Wait wait = wait_for_segments(); !wait.peers.empty()) return wait;
  }
  if (departure_.at_the_end()) {
    const std::vector<PeerId> missing = swarm_->not_at_the_end();
    return missing.empty() ? Wait{} : Wait{Wait::Kind::last_round, missing};
  }
  Wait wait = swarm_->waiting();
  const bool others = std::ranges::any_of(wait.peers, [&](PeerId peer) { return peer != options_.self; });
  return works && !others ? own : with_addresses(std::move(wait));
}

Wait Session::Machine::wait_for_state() const {
  if (worker_.is_taking_over() || !worker_.stands_ready()) return own_work();
  const sync::FetchProgress progress = replica_.progress();
  Wait wait{Wait::Kind::offers, replica_.waiting_for()};
  if (progress.total > 0) {
    wait.kind = progress.kind == wire::ObjectKind::state ? Wait::Kind::state : Wait::Kind::mean;
    wait.round = progress.round;
    wait.done = progress.done;
    wait.total = progress.total;
    const double took_s = to_seconds(doors_.clock.now() - progress.since);
    wait.bytes_per_s = took_s > 0 ? static_cast<double>(progress.done) / took_s : 0;
  }
  if (wait.peers.empty()) wait.peers = sources();  // they have answered, and are asked again
  if (!wait.peers.empty()) return wait;
  wait = {Wait::Kind::source, swarm_->roster().open_peers()};
  if (!wait.peers.empty()) return wait;
  wait.kind = Wait::Kind::answer;
  for (const wire::Member& m : members()) {
    if (m.peer != options_.self) wait.peers.push_back(m.peer);
  }
  if (!wait.peers.empty()) wait.kind = Wait::Kind::members;
  if (wait.peers.empty() && options_.founds()) {  // they dialled this peer, and have left
    wait.kind = Wait::Kind::others;
    wait.past = {"those that had its state are gone", {}, "nobody has the state of the run"};
  }
  return with_addresses(std::move(wait));
}

Wait Session::Machine::wait_for_segments() const {
  Wait wait{Wait::Kind::segments, {}, step_.round};
  for (const average::Reduction::Debt& debt : averager_.debts(step_)) {
    wait.done += debt.here;
    wait.total += debt.all;
    const bool named = std::ranges::find(wait.peers, debt.peer) != wait.peers.end();
    if (debt.here < debt.all && !named && debt.peer != options_.self) wait.peers.push_back(debt.peer);
  }
  return wait;
}

// Adds the last result of dialling: of the first awaited peer, or of an address of --join.
Wait Session::Machine::with_addresses(Wait wait) const {
  if (wait.kind == Wait::Kind::answer || wait.kind == Wait::Kind::founder) {
    for (const std::string& address : options_.join) {
      if (!wait.unanswered) wait.unanswered = waits_.unanswered(doors_.clock.now(), address);
    }
    if (!wait.unanswered && wait.kind == Wait::Kind::answer && !options_.join.empty())
      wait.unanswered = {options_.join.front(), {}, 0};
  } else if (wait.kind == Wait::Kind::members || wait.kind == Wait::Kind::majority) {
    for (const PeerId peer : wait.peers) {
      const std::string address = swarm_->roster().process(peer).address;
      if (!wait.unanswered) wait.unanswered = waits_.unanswered(doors_.clock.now(), address);
    }
  }
  if (const std::optional<Duration> left = search_.left(doors_.clock.now())) wait.left = left;
  return wait;
}

void Session::Machine::watch_waits() {
  const Round head = swarm_->head() ? swarm_->head()->round : 0;
  if (const std::optional<world::Event> event = waits_.watch(doors_.clock.now(), head + 1, waiting()))
    doors_.events.emit(*event);
}

}  // namespace tw::train
