// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/median.h"
#include "sim/virtual/world.h"

namespace tw::sim {
namespace {

/// The vector that is simulated: so many segments for each peer, and their length in floats. Bytes on the
/// network are scaled to those of the real one.
constexpr std::uint64_t kSegmentsPerPeer = 4;
constexpr std::uint64_t kSegmentLength = 16;
/// Chunks of the state that a joiner takes.
constexpr std::uint64_t kChunks = 64;
/// A path's window: with many streams to a peer it is not what bounds the rate.
constexpr double kWindowBytes = 1 << 26;
/// A machine that its owner gives up gets the grace of `tw up`.
constexpr Duration kGrace = std::chrono::seconds(25);
/// No run reaches it.
constexpr Round kEndless = 1'000'000'000;

std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

double bytes_per_s_of(const WhatIf& what) { return what.link_mbit * 1e6 / 8; }

/// A sample of the virtual run stands for a microbatch of the real one.
WorldOptions world_of(const WhatIf& what, std::uint64_t peers, std::uint64_t at_once) {
  WorldOptions world;
  world.seed = what.seed;
  world.run.model = "synthetic";
  world.run.microbatch = 1;
  world.run.batch.size = rounded_up(what.target_batch_size, what.microbatch);
  world.run.optimizer.kind = what.optimizer;
  world.run.codec = what.codec;
  world.run.rounds = kEndless;
  world.run.patience = what.patience;
  if (what.checkpoint_every > 0)
    world.run.checkpoint = {.folder = "checkpoints", .every = what.checkpoint_every};
  world.model = {kSegmentsPerPeer * kSegmentLength * peers, what.seed};
  world.segment_length = kSegmentLength;
  world.bulk_scale = what.parameters / static_cast<double>(world.model.parameters);
  const std::uint64_t state_bytes = 3 * sizeof(float) * world.model.parameters;
  world.chunk_bytes = rounded_up(state_bytes, kChunks);
  world.wait_for = static_cast<std::uint32_t>(at_once);
  world.links = {{.from = "",
                  .to = "",
                  .latency_s = what.rtt_ms / 2e3,
                  .jitter = 0.1,
                  .bytes_per_s = bytes_per_s_of(what),
                  .window_bytes = kWindowBytes}};
  return world;
}

struct Machine {
  MachineLifetime lifetime;
  bool anchor = false;
  std::optional<PeerId> peer{};  ///< once its process has started
  std::optional<Instant> up{}, ready{}, joined{}, left{}, down{};

  bool computes() const { return up && !down && !left; }
};

class Course {
 public:
  Course(const WhatIf& what, const std::function<void(double)>& told)
      : what_(what),
        told_(told),
        machines_(machines_of(what)),
        world_(world_of(what, slots(), at_once())),
        end_(at(what.length)) {}

  WhatIfReport run() {
    world_.watch([this](PeerId peer, const world::Event& event) { on_event(peer, event); });
    for (Machine& machine : machines_) follow(machine);
    world_.scheduler().run_until(Scheduler::kStart);  // who is there from the beginning
    world_.run_until(end_);
    return report();
  }

 private:
  struct Commit {
    Instant at{};
    int machines = 0, members = 0;
    double computed = 0;          ///< samples, up to then
    bool same_as_before = false;  ///< nobody came or went since the commit before
  };

  struct Loss {
    Instant at{};
    int left = 0;  ///< members that stay
  };

  static Instant at(Duration since_begin) { return Scheduler::kStart + since_begin; }

  static std::vector<Machine> machines_of(const WhatIf& what) {
    std::vector<Machine> machines;
    for (int i = 0; i < what.anchors; ++i) machines.push_back({{-1, Duration{}, what.length, false}, true});
    for (const MachineLifetime& lifetime : what.lifetimes) machines.push_back({lifetime});
    return machines;
  }

  std::uint64_t slots() const {
    int highest = -1;
    for (const MachineLifetime& lifetime : what_.lifetimes) highest = std::max(highest, lifetime.slot);
    return static_cast<std::uint64_t>(std::max(1, highest + 1 + what_.anchors));
  }

  /// When its process starts. The first machines are up at 0, but those of a policy, which has paid for that.
  Duration starts_at(const Machine& machine) const {
    const Duration comes = machine.lifetime.comes;
    const bool is_up = machine.anchor || (comes == Duration{} && !what_.policy);
    return is_up ? comes : comes + what_.start_up;
  }

  std::uint64_t at_once() const {
    const auto here = std::count_if(machines_.begin(), machines_.end(),
                                    [&](const Machine& m) { return starts_at(m) == Duration{}; });
    return static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(1, here));
  }

  /// What a machine computes in a second when it does nothing else.
  double real_speed() const { return what_.samples_per_s / (1 + Pace{}.jitter / 2); }

  void follow(Machine& machine) {
    const MachineLifetime& lifetime = machine.lifetime;
    const Duration start = starts_at(machine);
    if (start >= lifetime.goes) return;
    world_.scheduler().at(at(start), [this, &machine] { come(machine); });
    if (!lifetime.taken) return;
    const Duration notice = lifetime.given_up ? kGrace : what_.notice;
    if (notice > Duration{}) {
      world_.scheduler().at(at(std::max(start, lifetime.goes - notice)), [this, &machine] { warn(machine); });
    }
    world_.scheduler().at(at(lifetime.goes), [this, &machine] { go(machine); });
  }

  void come(Machine& machine) {
    machine.up = world_.now();
    const double bytes_per_s = bytes_per_s_of(what_);
    const double units_per_s = what_.samples_per_s / static_cast<double>(what_.microbatch);
    machine.peer = world_.add_peer(PeerSpec{0, units_per_s, {bytes_per_s, bytes_per_s}});
    by_peer_[*machine.peer] = &machine;
    changed_ = true;
  }

  void warn(Machine& machine) {
    if (!world_.lives(*machine.peer)) return;
    world_.referee().struck({FaultKind::leave, {*machine.peer}, world_.now()});
    world_.leave(*machine.peer);
    await_farewell(machine);
  }

  void await_farewell(Machine& machine) {
    if (machine.down || machine.left) return;
    if (!world_.lives(*machine.peer)) {
      machine.left = world_.now();
      leaves_ += machine.joined ? 1 : 0;
      changed_ = true;
      return;
    }
    world_.scheduler().after(std::chrono::seconds(1), [this, &machine] { await_farewell(machine); });
  }

  void go(Machine& machine) {
    machine.down = world_.now();
    changed_ = true;
    if (!world_.lives(*machine.peer)) return;
    world_.referee().struck({FaultKind::preempt_0s, {*machine.peer}, world_.now()});
    world_.kill(*machine.peer, Death::silent);
    if (!machine.joined) return;
    ++losses_;
    const auto staying = std::count_if(machines_.begin(), machines_.end(),
                                       [](const Machine& m) { return m.computes() && m.joined; });
    if (!loss_moments_.empty() && loss_moments_.back().at == world_.now()) loss_moments_.pop_back();
    loss_moments_.push_back({world_.now(), static_cast<int>(staying)});
  }

  void on_event(PeerId peer, const world::Event& event) {
    // The first event of a peer comes before add_peer returns.
    const auto found = by_peer_.find(peer);
    if (event.phase() == world::Phase::accumulate && found != by_peer_.end() && !found->second->ready)
      found->second->ready = world_.now();
    const auto* commit = event.as<event::Commit>();
    if (commit == nullptr) return;
    averaging_s_ += commit->comm_s.value_or(0);
    if (event.round <= newest_) return;
    newest_ = event.round;
    if (told_) told_(to_seconds(world_.now() - Scheduler::kStart) / to_seconds(what_.length));
    world_.scheduler().after(Duration{}, [this] { note_commit(); });
  }

  void note_commit() {
    const wire::Record* newest = world_.referee().ledger().newest();
    TW_CHECK(newest != nullptr);
    Commit commit{world_.now(), 0, static_cast<int>(newest->members.size()),
                  world_.computed_samples() * static_cast<double>(what_.microbatch), !changed_};
    std::set<PeerId> members;
    for (const wire::Member& m : newest->members) members.insert(m.peer);
    for (Machine& machine : machines_) {
      commit.machines += machine.computes() ? 1 : 0;
      if (machine.joined || !machine.peer || !members.contains(*machine.peer)) continue;
      machine.joined = world_.now();
      commit.same_as_before = false;
    }
    changed_ = false;
    commits_.push_back(commit);
  }

  /// What a round takes beside its calculation, when nothing happens.
  double overhead_s() const {
    std::vector<double> seconds;
    for (std::size_t i = 1; i < commits_.size(); ++i) {
      if (!commits_[i].same_as_before || commits_[i].members == 0) continue;
      seconds.push_back(to_seconds(commits_[i].at - commits_[i - 1].at) - work_s(commits_[i].members));
    }
    return median(seconds);
  }

  double work_s(int members) const {
    return static_cast<double>(what_.target_batch_size) / (real_speed() * std::max(1, members));
  }

  void tell_recovery(WhatIfReport& report) const {
    const double overhead = overhead_s();
    std::vector<double> seconds;
    for (const Loss& loss : loss_moments_) {
      const auto next = std::find_if(commits_.begin(), commits_.end(),
                                     [&](const Commit& commit) { return commit.at > loss.at; });
      if (next == commits_.end()) continue;
      const double usual = work_s(loss.left) + overhead;
      seconds.push_back(std::max(0.0, to_seconds(next->at - loss.at) - usual));
    }
    report.recover_s_median = median(seconds);
    report.recover_s_worst = seconds.empty() ? 0 : *std::max_element(seconds.begin(), seconds.end());
  }

  void tell_members(WhatIfReport& report) const {
    std::vector<double> rounds;
    double weighted = 0;
    for (std::size_t i = 0; i < commits_.size(); ++i) {
      const Commit& commit = commits_[i];
      report.strength.push_back({to_seconds(commit.at - Scheduler::kStart), commit.machines, commit.members});
      report.members_most = std::max(report.members_most, commit.members);
      report.members_least = i == 0 ? commit.members : std::min(report.members_least, commit.members);
      const Instant until = i + 1 < commits_.size() ? commits_[i + 1].at : world_.now();
      weighted += to_seconds(until - commit.at) * commit.members;
      if (i > 0) rounds.push_back(to_seconds(commit.at - commits_[i - 1].at));
    }
    report.round_s = median(rounds);
    if (!commits_.empty()) report.members_mean = weighted / to_seconds(world_.now() - commits_.front().at);
  }

  /// Capacity and where it went, in samples; shares later.
  void tell_capacity(WhatIfReport& report) const {
    const Instant end = world_.now();
    const auto samples = [&](Duration time) { return to_seconds(time) * real_speed(); };
    for (const Machine& machine : machines_) {
      if (!machine.up) continue;
      const Instant down = machine.down.value_or(end);
      ++report.machines;
      report.capacity_samples += samples(down - *machine.up);
      report.lost.joining += samples(machine.ready.value_or(machine.left.value_or(down)) - *machine.up);
      if (machine.left) report.lost.leaving += samples(down - *machine.left);
    }
    report.lost.averaging = averaging_s_ * real_speed();
    report.lost.recomputed = report.recomputed_samples;
  }

  void tell_shares(WhatIfReport& report) const {
    const double all = std::max(1.0, report.capacity_samples);
    LostShares& lost = report.lost;
    report.goodput = static_cast<double>(report.samples) / all;
    for (double* share : {&lost.joining, &lost.averaging, &lost.recomputed, &lost.leaving}) *share /= all;
    lost.waiting = 1 - report.goodput - lost.joining - lost.averaging - lost.recomputed - lost.leaving;
  }

  void tell_cost(WhatIfReport& report) const {
    const double length_h = to_seconds(report.simulated) / 3600;
    report.sent_gb = static_cast<double>(world_.paths().sent_bytes()) / 1e9;
    report.usd = what_.anchors * length_h * what_.anchor_usd_per_h + report.sent_gb * what_.egress_usd_per_gb;
    for (const Machine& machine : machines_) {
      if (machine.anchor) continue;
      const MachineLifetime& lifetime = machine.lifetime;
      const Duration goes = std::min(lifetime.goes, report.simulated);
      const double hours = std::max(0.0, to_seconds(goes - lifetime.comes)) / 3600;
      (lifetime.on_demand ? report.on_demand_hours : report.machine_hours) += hours;
      report.usd += hours * lifetime.usd_per_h.value_or(what_.usd_per_h);
    }
    if (report.samples > 0)
      report.usd_per_million_samples = report.usd / static_cast<double>(report.samples) * 1e6;
  }

  WhatIfReport report() {
    WhatIfReport report;
    report.simulated = world_.now() - Scheduler::kStart;
    const wire::Record* newest = world_.referee().ledger().last_known();
    if (newest != nullptr) {
      report.rounds = newest->round;
      report.samples = newest->samples_total() * what_.microbatch;
    }
    report.rounds_lost = world_.referee().ledger().records_beside(newest);
    const double computed = commits_.empty() ? 0 : commits_.back().computed;
    report.recomputed_samples = std::max(0.0, computed - static_cast<double>(report.samples));
    report.losses = losses_;
    report.leaves = leaves_;
    tell_recovery(report);
    tell_members(report);
    tell_capacity(report);
    tell_shares(report);
    tell_cost(report);
    if (what_.policy) report.planned_samples = 3600 * what_.policy->work_h * real_speed();
    for (const Violation& v : world_.referee().violations())
      report.violations.push_back(v.checker + ": " + v.message);
    report.events = world_.scheduler().events();
    return report;
  }

  WhatIf what_;
  const std::function<void(double)>& told_;
  std::vector<Machine> machines_;
  World world_;
  Instant end_;
  Round newest_ = 0;
  bool changed_ = false;
  std::map<PeerId, Machine*> by_peer_;
  double averaging_s_ = 0;  ///< of all members together
  int losses_ = 0;
  int leaves_ = 0;
  std::vector<Commit> commits_;
  std::vector<Loss> loss_moments_;
};

}  // namespace

WhatIfReport what_if(const WhatIf& what, const std::function<void(double share)>& told) {
  return Course(what, told).run();
}

}  // namespace tw::sim
