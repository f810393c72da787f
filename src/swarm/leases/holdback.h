// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/time.h"
#include "swarm/straggler_policy.h"
#include "wire/messages.h"

namespace tw::swarm {

/// For whom the leader holds back leases: joiners that say that they lost ground twice, because state and
/// means come to them more slowly than rounds are made. With the next round under way at once they would load
/// the lines of the others for ever and never take part.
///
/// Bounds, whatever a joiner says: one that gets nothing for kStill is not waited for, a wait ends after
/// kLongest, and after each wait leases go out for at least as long as it took. So rounds are made in at
/// least half of the time. A step machine.
class Holdback {
 public:
  static constexpr std::uint32_t kLostGround = 2;  ///< so often, and it is waited for
  static constexpr Duration kStill = swarm::kJoinerIsStill;
  static constexpr Duration kLongest = swarm::kJoinerIsWaitedFor;

  void heard(Instant now, PeerId peer, const wire::Heartbeat& told);

  /// It is to take the state with which the run begins.
  void begins(Instant now, PeerId peer) { joiners_[peer] = {.moved_at = now, .begins = true}; }

  void on_close(PeerId peer) { joiners_.erase(peer); }

  void step(Instant now);

  /// Nobody gets leases before these stand at the head.
  std::vector<PeerId> peers() const;

 private:
  struct Joiner {
    std::uint64_t pieces = 0;
    Instant moved_at{};
    bool still = false;
    bool had_its_time = false;
    bool begins = false;

    bool is_waited_for() const { return !still && !had_its_time; }
  };

  std::map<PeerId, Joiner> joiners_;  ///< that lost ground, or begin
  Instant since_ = kNever;            ///< leases are held back; kNever: they are not
  Instant not_before_{};
};

}  // namespace tw::swarm
