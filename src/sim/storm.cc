// SPDX-License-Identifier: Apache-2.0
#include "sim/storm.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/prng.h"
#include "sim/world.h"

namespace tw::v1 {
namespace {

/// A death without notice is noticed within this time (docs/protocol.md: max(2 s, 6 RTT)).
constexpr Duration kUnnoticed = std::chrono::seconds(4);

RunOptions draw_run(Prng& random, const StormOptions& options) {
  RunOptions run;
  run.model = "synthetic";
  run.microbatch = 1 + random.below(8);
  run.target_batch_size = run.microbatch * (8 + random.below(24)) + random.below(run.microbatch);
  run.optimizer.kind = random.chance(0.5) ? OptimizerKind::adamw : OptimizerKind::sgd;
  run.schedule.learning_rate = 1e-3;
  run.codec = random.chance(0.5) ? Codec::fp16 : Codec::fp32;
  run.rounds = options.faults.rounds;
  run.patience = options.patience;
  return run;
}

WorldOptions draw_world(std::uint64_t seed, const StormOptions& options) {
  Prng random(mix(seed, 11));
  WorldOptions world;
  world.seed = seed;
  world.run = draw_run(random, options);
  world.model = {50 + random.below(251), seed};
  world.wait_for = static_cast<std::uint32_t>(options.peers);
  LinkSpec& link = world.links.front();
  SiteSpec& site = world.sites.front();
  link.latency_s = random.chance(0.3) ? Between{1e-4, 2e-3} : Between{1e-4, 0.15};
  link.bytes_per_s = random.chance(0.5) ? Between{1e4, 1e6} : Between{1e6, 1e8};
  site.up_bytes_per_s = site.down_bytes_per_s = link.bytes_per_s;
  world.keep_stale_seals = options.keep_stale_seals;
  world.keep_lines = options.keep_lines;
  return world;
}

/// Brings the faults of a plan upon a world, at their times or cues.
class Storm {
 public:
  Storm(std::uint64_t seed, const StormOptions& options)
      : options_(options),
        world_(draw_world(seed, options)),
        armed_(draw_faults(mix(seed, 12), options.faults)) {
    report_.seed = seed;
  }

  SimReport run() {
    world_.watch([this](PeerId peer, const Event& event) { on_event(peer, event); });
    for (int i = 0; i < options_.peers; ++i) world_.add_peer();
    for (const Fault& fault : armed_) {
      if (!fault.cue) strike_after(fault, std::nullopt);
    }
    std::erase_if(armed_, [](const Fault& fault) { return !fault.cue; });
    world_.scheduler().after(options_.faults.span, [this] { become_calm(); });
    world_.run_until(Scheduler::kStart + options_.faults.span + options_.calm_limit);
    world_.finish();
    return report();
  }

 private:
  void on_event(PeerId author, const Event& event) {
    if (!calm_ && event.phase == Phase::commit && event.round + kCalmRounds >= options_.faults.rounds) {
      world_.scheduler().after(Duration{}, [this] { become_calm(); });
    }
    // Watchers must not act: whatever follows is a later call of the scheduler.
    for (std::size_t i = 0; i < armed_.size();) {
      const Fault& fault = armed_[i];
      if (fault.cue && fault.cue->phase == event.phase && fault.cue->round == event.round) {
        strike_after(fault, author);
        armed_.erase(armed_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  void strike_after(const Fault& fault, std::optional<PeerId> author) {
    world_.scheduler().after(fault.after, [this, fault, author] {
      if (!calm_) strike(fault, author);
    });
  }

  void become_calm() {
    if (calm_) return;
    calm_ = true;
    armed_.clear();
    world_.heal();
    world_.resume_all();
  }

  void strike(const Fault& fault, std::optional<PeerId> author) {
    const std::vector<PeerId> alive = world_.alive();
    if (alive.size() < 2) return;
    const PeerId victim = aim(fault, author, alive);
    const PeerId other = alive[(fault.choice >> 20) % alive.size()];
    if (!strike_one(fault, victim, other)) return;
    ++report_.faults[fault.kind];
  }

  bool strike_one(const Fault& fault, PeerId victim, PeerId other) {
    switch (fault.kind) {
      case FaultKind::kill:
        return kill(victim, fault.death);
      case FaultKind::join:
        return join();
      case FaultKind::leave:
        return leave(victim);
      case FaultKind::stop:
        world_.stop(victim, fault.lasts);
        return true;
      case FaultKind::isolate:
        isolate(fault, victim);
        return true;
      case FaultKind::reset:
        if (victim != other) world_.reset_link(victim, other);
        return victim != other;
      case FaultKind::slow:
        if (victim != other) world_.set_path(victim, other, slow_path(fault.choice));
        return victim != other;
    }
    return false;
  }

  PeerId aim(const Fault& fault, std::optional<PeerId> author, const std::vector<PeerId>& alive) const {
    const PeerId any = alive[fault.choice % alive.size()];
    if (fault.aim == Aim::author && author && world_.lives(*author)) return *author;
    if (fault.aim == Aim::leader) {
      const PeerId leader = world_.view(any).leader;
      if (world_.lives(leader)) return leader;
    }
    return any;
  }

  static Quality slow_path(std::uint64_t choice) {
    Prng random(choice);
    const Duration latency = from_seconds(Between{1e-3, 0.3}.draw(random));
    return {latency, latency / 2, Between{5e3, 1e6}.draw(random), 1 << 12};
  }

  bool kill(PeerId victim, Death death) {
    if (!may_go(victim)) return false;
    if (const auto phase = world_.phase(victim)) ++report_.kills_by_phase[*phase];
    if (world_.view(victim).leader == victim) ++report_.leader_kills;
    world_.kill(victim, death);
    gone_[victim] = world_.now();
    return true;
  }

  bool join() {
    if (++came_ + options_.peers > options_.most_peers) return false;
    world_.add_peer();
    return true;
  }

  bool leave(PeerId peer) {
    if (!may_go(peer)) return false;
    world_.leave(peer);
    gone_[peer] = world_.now();
    return true;
  }

  void isolate(const Fault& fault, PeerId victim) {
    Prng random(fault.choice);
    std::set<PeerId> side{victim};
    for (const PeerId peer : world_.alive()) {
      if (random.chance(0.3)) side.insert(peer);
    }
    world_.isolate(side, random.chance(0.3));
    world_.scheduler().after(fault.lasts, [this] { world_.heal(); });
  }

  // Whether whatever may be decided next can go on without this peer.
  bool may_go(PeerId peer) const {
    const Record* last = world_.ledger().newest();
    if (last == nullptr || last->round == 0) return false;
    std::vector<Record> bases = world_.open_drafts();
    bases.push_back(*last);
    if (const Record* before = world_.ledger().find(last->parent)) bases.push_back(*before);
    return (!options_.keep_majority || most_beside_live(peer)) &&
           std::all_of(bases.begin(), bases.end(),
                       [&](const Record& record) { return enough_live_without(record, peer); });
  }

  // A leader that has not noticed yet who died of late may name all of them in its next draft.
  bool most_beside_live(PeerId peer) const {
    std::size_t beside = 0;
    for (const PeerId other : world_.alive()) {
      beside += world_.runs_beside(peer, other) && !gone_.contains(other) ? 1 : 0;
    }
    const Instant of_late = world_.now() - kUnnoticed;
    const auto dead =
        std::count_if(gone_.begin(), gone_.end(), [&](const auto& gone) { return gone.second > of_late; });
    return 2 * (beside - 1) > beside + static_cast<std::size_t>(dead);
  }

  bool enough_live_without(const Record& record, PeerId peer) const {
    const auto live = std::count_if(record.members.begin(), record.members.end(), [&](const Member& member) {
      return member.peer != peer && !gone_.contains(member.peer) && world_.lives(member.peer);
    });
    return options_.keep_majority ? 2 * live > std::ssize(record.members) : live > 0;
  }

  SimReport report() {
    report_.history = world_.history().digest();
    report_.violations = world_.violations();
    report_.lines = world_.history().lines();
    const Record* last = world_.ledger().newest();
    report_.rounds = last == nullptr ? 0 : last->round;
    report_.minority_records = world_.ledger().minority_records();
    report_.events = world_.scheduler().events();
    report_.simulated = world_.now() - Scheduler::kStart;
    return report_;
  }

  StormOptions options_;
  World world_;
  std::vector<Fault> armed_;        ///< wait for their cue
  std::map<PeerId, Instant> gone_;  ///< killed, or told to leave, and when
  int came_ = 0;
  bool calm_ = false;
  SimReport report_;
};

}  // namespace

SimReport run_storm(std::uint64_t seed, const StormOptions& options) { return Storm(seed, options).run(); }

std::string to_string(const SimReport& report) {
  std::string text =
      fmt::format("storm seed {}: {} rounds in {:.1f} s, {} events, history {}", report.seed, report.rounds,
                  to_seconds(report.simulated), report.events, to_string(report.history));
  for (const Violation& violation : report.violations) {
    text += fmt::format("\n  {}: {}", violation.checker, violation.message);
  }
  return text;
}

}  // namespace tw::v1
