// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/time.h"
#include "swarm/straggler_policy.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Joiners for which the leader holds back leases. They report that they lost ground twice, because state and
/// means reach them more slowly than rounds are made. If rounds went on at once, these joiners would use up
/// others' bandwidth for ever and never take part.
///
/// Nobody waits for a joiner while its program is busy.
///
/// Bounds, whatever a joiner says: a joiner that gets nothing for kStill is not waited for, and a wait ends
/// after kLongest. After each wait leases go out for at least as long as it took, so that rounds are made at
/// least half of the time. A step machine.
class Holdback {
 public:
  static constexpr std::uint32_t kLostGround = 2;  ///< a joiner that lost ground this often is waited for
  static constexpr Duration kStill = kJoinerIsStill;
  static constexpr Duration kLongest = kJoinerIsWaitedFor;

  void heard(Instant now, PeerId peer, const wire::Heartbeat& told);

  /// The peer has to take the state with which the run begins.
  void begins(Instant now, PeerId peer) { joiners_[peer] = {.moved_at = now, .begins = true}; }

  void on_close(PeerId peer) { joiners_.erase(peer); }

  void step(Instant now);

  /// No peer gets leases before these have the newest record.
  std::vector<PeerId> peers() const;

 private:
  struct Joiner {
    std::uint64_t pieces = 0;
    Instant moved_at{};
    bool still = false;
    bool had_its_time = false;
    bool begins = false;
    wire::Presence presence = wire::Presence::here;

    bool is_waited_for() const { return !still && !had_its_time && presence < wire::Presence::away; }
  };

  std::map<PeerId, Joiner> joiners_;  ///< that lost ground, or begin
  Instant since_ = kNever;            ///< leases are held back since then; kNever: they are not
  Instant not_before_{};
};

}  // namespace tw::swarm
