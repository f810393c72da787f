// SPDX-License-Identifier: Apache-2.0
#include "train/session/wait_reason.h"

#include <algorithm>
#include <string>

namespace tw::train {

using swarm::Wait;

// A checkpoint is written and copied beside other work: the session waits for it only after the last round,
// and where it leaves last.
Wait WaitReason::own_work() const {
  const auto away_since = [this](Instant since) {
    const Duration away = core_.clock.now() - since;
    return Wait{.kind = Wait::Kind::away, .done = static_cast<std::uint64_t>(to_seconds(away))};
  };
  Wait wait = core_.waits.compute().current();
  if (core_.worker.jobs(Worker::State::away) > 0) wait = away_since(core_.waits.compute().since());
  const bool disk_counts = core_.departure.has_last_jobs() || !core_.swarm.head();
  if (wait.kind == Wait::Kind::nothing && disk_counts) wait = core_.waits.disk().current();
  if (wait.kind == Wait::Kind::nothing && core_.departure.has_last_jobs()) wait = copying();
  if (wait.kind == Wait::Kind::nothing && core_.worker.paused_since())
    wait = away_since(*core_.worker.paused_since());
  return wait;
}

/// Stores say how much they got; a folder does not. Saves into a store count there, too.
Wait WaitReason::copying() const {
  Wait wait = core_.waits.copies().current();
  const bool saves_to_store = core_.options.run.checkpoint.folder.find("://") != std::string::npos;
  if (wait.kind == Wait::Kind::copying && !saves_to_store)
    wait.done = std::min(wait.total, core_.written_bytes() - core_.written_before_copy);
  return wait;
}

// Its own work comes first, except work that it does while others average.
Wait WaitReason::current() const {
  if (core_.departure.ended()) {
    const Wait disk = core_.waits.disk().current();
    return disk.kind == Wait::Kind::saving ? disk : copying();
  }
  const bool returns = recovery_.returning().stage() == ReturnWait::Stage::waiting;
  if (const auto heir = resumption_.awaited(); heir && returns) return {Wait::Kind::source, {*heir}};
  if (Wait others = recovery_.returning().waiting(core_.clock.now()); others.kind != Wait::Kind::nothing)
    return others;
  if (const auto leader = recovery_.unlinked_leader()) return with_addresses({Wait::Kind::link, {*leader}});
  if (recovery_.replica().is_catching_up()) return wait_for_state();
  const Wait own = own_work();
  const bool averages = rounds_.averager().plan(rounds_.step()) != nullptr;
  const bool works = own.kind != Wait::Kind::nothing;
  if (works && (!averages || own.kind == Wait::Kind::computing)) return own;
  if (averages && !rounds_.averager().complete(rounds_.step())) {
    if (Wait wait = wait_for_segments(); !wait.peers.empty()) return wait;
  }
  if (core_.departure.at_the_end()) {
    const std::vector<PeerId> missing = core_.swarm.view().not_at_the_end();
    return missing.empty() ? Wait{} : Wait{Wait::Kind::last_round, missing};
  }
  Wait wait = core_.swarm.waiting();
  const bool others =
      std::ranges::any_of(wait.peers, [&](PeerId peer) { return peer != core_.options.self; });
  return works && !others ? own : with_addresses(std::move(wait));
}

Wait WaitReason::wait_for_state() const {
  if (core_.worker.is_taking_over() || !core_.worker.stands_ready()) return own_work();
  const sync::FetchProgress progress = recovery_.replica().progress();
  Wait wait{Wait::Kind::offers, recovery_.replica().waiting_for()};
  if (progress.total > 0) {
    wait.kind = progress.kind == wire::ObjectKind::state ? Wait::Kind::state : Wait::Kind::mean;
    wait.round = progress.round;
    wait.done = progress.done;
    wait.total = progress.total;
    const double took_s = to_seconds(core_.clock.now() - progress.since);
    wait.bytes_per_s = took_s > 0 ? static_cast<double>(progress.done) / took_s : 0;
  }
  if (wait.peers.empty()) wait.peers = recovery_.sources();  // they have answered, and are asked again
  if (!wait.peers.empty()) return wait;
  wait = {Wait::Kind::source, core_.swarm.view().membership.roster().open_peers()};
  if (!wait.peers.empty()) return wait;
  wait.kind = Wait::Kind::answer;
  if (core_.swarm.head()) {
    for (const wire::Member& m : core_.swarm.head()->members)
      if (m.peer != core_.options.self) wait.peers.push_back(m.peer);
  }
  if (!wait.peers.empty()) wait.kind = Wait::Kind::members;
  if (wait.peers.empty() && core_.options.founds()) {  // they dialled this peer, and have left
    wait.kind = Wait::Kind::others;
    wait.past = {"those that had its state are gone", {}, "nobody has the state of the run"};
  }
  return with_addresses(std::move(wait));
}

Wait WaitReason::wait_for_segments() const {
  Wait wait{Wait::Kind::segments, {}, core_.round};
  for (const average::Reduction::Debt& debt : rounds_.averager().debts(rounds_.step())) {
    wait.done += debt.here;
    wait.total += debt.all;
    const bool named = std::ranges::find(wait.peers, debt.peer) != wait.peers.end();
    if (debt.here < debt.all && !named && debt.peer != core_.options.self) wait.peers.push_back(debt.peer);
  }
  return wait;
}

// Adds the last result of dialling: of the first awaited peer, or of an address of --join.
Wait WaitReason::with_addresses(Wait wait) const {
  if (wait.kind == Wait::Kind::answer || wait.kind == Wait::Kind::founder) {
    for (const auto* addresses : {&core_.options.join, &core_.options.found})
      for (const std::string& address : *addresses)
        if (!wait.unanswered) wait.unanswered = core_.waits.unanswered(core_.clock.now(), address);
    if (!wait.unanswered && wait.kind == Wait::Kind::answer && !core_.options.join.empty())
      wait.unanswered = {core_.options.join.front(), {}, 0};
  } else if (wait.kind == Wait::Kind::members || wait.kind == Wait::Kind::majority ||
             wait.kind == Wait::Kind::link) {
    for (const PeerId peer : wait.peers) {
      const std::string address = core_.swarm.view().membership.roster().process(peer).address;
      if (!wait.unanswered) wait.unanswered = core_.waits.unanswered(core_.clock.now(), address);
      const bool is_dialled = wait.kind == Wait::Kind::link && !address.empty();
      if (!wait.unanswered && is_dialled) wait.unanswered = {address, {}, 0};
    }
  }
  if (const std::optional<Duration> left = linking_.left()) wait.left = left;
  return wait;
}

void WaitReason::watch() {
  const Round head = core_.swarm.head() ? core_.swarm.head()->round : 0;
  if (const std::optional<world::Event> event = core_.waits.watch(core_.clock.now(), head + 1, current()))
    core_.events.emit(*event);
}

}  // namespace tw::train
