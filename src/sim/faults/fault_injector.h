// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/faults/faults.h"
#include "sim/scenarios/scenario.h"
#include "sim/virtual/world.h"

namespace tw::sim {

/// Brings faults upon a world, one at a time, until calm. Chooses the victims, and spares peers that must
/// live on (Scenario::keep_majority).
class FaultInjector {
 public:
  FaultInjector(const Scenario& scenario, World& world);

  /// author: of the event that the fault waited for. Without a suitable peer nothing happens.
  void strike(const Fault& fault, std::optional<PeerId> author);

  /// Heals and resumes all; later events (returns, ends of notices) are cancelled.
  void become_calm();

  bool calm() const { return calm_; }

  /// How often a fault of this kind had an effect: a message was changed, a write failed, a peer was struck.
  int fired(FaultKind kind) const;

  const std::map<world::Phase, int>& kills_by_phase() const { return kills_by_phase_; }

  int leader_kills() const { return leader_kills_; }

 private:
  using Peers = std::vector<PeerId>;

  bool strike_one(const Fault& fault, PeerId victim, PeerId other);
  bool tamper(const Fault& fault, PeerId victim);
  void end_tampering(PeerId victim, FaultKind kind);
  PeerId aim(const Fault& fault, std::optional<PeerId> author, const Peers& alive) const;
  bool strike_path(const Fault& fault, PeerId victim, PeerId other);
  bool strike_network(const Fault& fault, PeerId victim);
  bool strike_process(const Fault& fault, PeerId victim);
  bool strike_disk(const Fault& fault, PeerId victim);
  bool strike_store(const Fault& fault, PeerId victim);
  bool worsen(const Fault& fault, PeerId a, PeerId b);
  std::set<PeerId> side_of(PeerId victim, Prng& random) const;
  void swizzle(const Fault& fault, PeerId victim);
  bool end(PeerId victim, Death death);
  bool power_off(PeerId victim);
  bool relaunch(PeerId victim, const Fault& fault);
  bool lose_all(const Fault& fault);
  void roll(Peers left, const Fault& fault);
  bool preempt(FaultKind kind, PeerId victim);
  bool lose_zone(const Fault& fault, PeerId victim);
  bool join(PeerId beside);
  bool leave(PeerId peer);
  bool put_at_risk(PeerId victim, Duration lasts);
  void later(Duration after, std::function<void()> call);
  void tell(FaultKind kind, Peers victims, Duration lasts = {});
  bool may_go(PeerId peer) const;
  bool most_beside_live(PeerId peer) const;
  bool enough_live_without(const wire::Record& record, PeerId peer) const;

  const Scenario& scenario_;
  World& world_;
  std::map<PeerId, Instant> gone_;  ///< killed, or asked to leave, and when
  std::map<FaultKind, int> fired_;
  std::map<PeerId, FaultKind> tampering_;
  std::set<PeerId> without_store_;  ///< for a time
  std::map<world::Phase, int> kills_by_phase_;
  int leader_kills_ = 0;
  int came_;
  bool calm_ = false;
};

}  // namespace tw::sim
