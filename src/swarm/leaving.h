// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "swarm/announcing.h"
#include "swarm/swarm_core.h"

namespace tw::swarm {

/// How this peer leaves, and what it takes over from leaving peers: docs/protocol.md, "Leaving". A seat and a
/// sum have one owner at any time: this peer decides nothing any more once it gave its seat away.
class Leaving {
 public:
  /// Both outlive it.
  Leaving(SwarmCore& core, Announcing& announcing) : core_(core), announcing_(announcing) {}

  // ---- this peer leaves
  /// False when this is nothing new, or only another deadline.
  bool leave(std::optional<Instant> deadline);

  /// Its machine may be taken away soon, or is safe again. False after its end.
  bool set_at_risk(bool at_risk);

  /// Its machine stands still from `from` for `lasts`: tells others to expect its silence.
  void freeze(Instant now, Instant from, Duration lasts);

  /// This process ends now, and its sums with it. Another member votes in its place, so that the others need
  /// not wait until they may go on without a majority.
  void leave_seat();

  /// Ends this peer's part in the run, once nothing keeps it.
  void consider();

  // ---- what it did goes to another one
  /// Order of a leader that is followed.
  void take(const wire::HandOver& order);

  /// Names the sums to be sent, once no microbatch is under way.
  void hand_over_when_idle();

  /// All of them are on their way. False when no hand-over is under way.
  bool handed_over();

  // ---- what another one did comes here
  /// Returns the slots in which the sums count; nothing when this peer does not take them.
  std::optional<std::vector<std::uint32_t>> keep(PeerId from, const wire::Entrust& entrust);

 private:
  void go_early();
  void entrust(PeerId to, std::vector<wire::SlotProgress> slots, bool gives_seat);

  SwarmCore& core_;
  Announcing& announcing_;
};

}  // namespace tw::swarm
