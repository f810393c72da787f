// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "swarm/leading.h"
#include "swarm/swarm_core.h"
#include "wire/bandwidth.h"
#include "wire/link_messages.h"

namespace tw::swarm {

/// Fields that a peer reports about itself.
struct OwnWord {
  double samples_per_s = 0;
  std::uint64_t grain = 1;
  wire::Presence presence = wire::Presence::here;
  wire::Bandwidth bandwidth{};
  wire::CatchingUp catching_up{};
  std::string settings{};  ///< that its program wanted with its last gradient (wire::Record::settings)

  bool is_here() const { return presence == wire::Presence::here; }
};

/// What others hear of this peer: its state in heartbeats, its work in progress reports, and its vote. It
/// decides nothing. State comes before progress: only peers that follow the history count.
class Announcing {
 public:
  /// Both outlive it.
  Announcing(SwarmCore& core, Leading& leading);

  const OwnWord& own() const { return own_; }

  // ---- what this peer knows of itself; others hear it with what goes out next

  /// Bandwidth that was measured at this peer.
  void measured(const wire::Bandwidth& bandwidth) { own_.bandwidth = bandwidth; }

  /// It computes at most so many microbatches at once; 0: not known yet.
  void computes_at_once(std::uint64_t most);

  /// What the last item of work showed.
  void computed(double samples_per_s, const std::string& settings);

  /// False when this is nothing new.
  bool set_presence(wire::Presence presence);

  /// Progress while this peer takes the state of others. Others hear at once that it lost ground too often.
  void catching_up(Instant now, const wire::CatchingUp& how);

  /// The program ends the run for all, with the round under way, or the next one where that was called.
  /// Others hear it at once; it counts while this peer is a member.
  void end_run(Instant now);

  // ---- what goes out

  wire::Heartbeat heartbeat_to(PeerId peer) const;
  wire::Progress progress() const;

  /// A heartbeat to every linked peer.
  void tell_peer_state();

  /// Progress to the leader; from a peer that is no member, to all. gave_back: what it does not list is free.
  void send_progress(bool gave_back = false);

  /// Samples of this round that cannot be computed here, if any.
  void tell_failures(PeerId to);

  /// To the owner of the ballot, if the mean of the plan is here.
  void say_vote();

  /// Heartbeats that are due, and what may have been lost: called once in HeartbeatSchedule::kTick. Returns
  /// the peers that got one.
  std::vector<PeerId> tick();

  /// Again, after the same tick, and only to these where this peer knows no leader.
  void tell_again(const std::vector<PeerId>& where_unled);

 private:
  std::set<PeerId> in_front() const;
  void send_progress(bool gave_back, const std::vector<PeerId>& where_unled);

  SwarmCore& core_;
  Leading& leading_;
  OwnWord own_;
  Instant told_progress_{};
  Round owes_answer_ = 0;  ///< to a recall in this round that came before it could tell anything; 0: none
  Instant told_state_{};
};

}  // namespace tw::swarm
