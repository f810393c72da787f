// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "swarm/lead.h"
#include "swarm/swarm_core.h"

namespace tw::swarm {

/// This peer's own lead, while it leads the round under way (docs/protocol.md). When a leader dies, the next
/// member in the order of the record bids higher; what was accepted from the dead one comes back in the
/// promises of the others (Proposer).
///
/// A peer has at most one lead, for the round after its head. The lead ends with the round, with a higher
/// ballot, or when a member that is less reluctant is here.
class Leading {
 public:
  /// The core outlives it.
  explicit Leading(SwarmCore& core) : core_(core) {}

  bool leads() const { return lead_.has_value(); }

  /// Null while another peer leads, or none.
  Lead* lead() { return lead_ ? &*lead_ : nullptr; }

  const Lead* lead() const { return lead_ ? &*lead_ : nullptr; }

  /// Leads from now on if it is this peer's turn. Returns its ballot then.
  std::optional<Ballot> consider();

  /// Gives up a lead when a higher ballot is known, it resigned, or another member should lead.
  void leave_a_lost_one();

  /// The lead takes a step, and what it decides goes out. Returns why the run has to stop, if it has to.
  std::optional<wire::Stop> step();

  /// It is over. The next one may begin at once.
  void end() { lead_.reset(); }

  void begin_round() { again_at_ = {}; }

  /// The round of this peer's present or next lead is the last one.
  void end_run() { is_last_ = true; }

  /// The last round is another one than the options say. Not while it leads.
  void ends_with(Round round) { core_.options.rounds = round; }

  /// Lower bound in seconds of averaging by its own plan; 0 if no bandwidth is known or another peer leads.
  double least_reduce_s(const wire::Plan& plan) const { return lead_ ? lead_->least_reduce_s(plan) : 0; }

  /// The wait of a peer that should lead but does not yet: another one may still do so.
  Wait wait_to_lead() const;

 private:
  void hold_back();
  void see_who_is_here();

  SwarmCore& core_;
  std::optional<Lead> lead_;
  Instant began_at_{};       ///< the present or last lead
  std::uint64_t knows_ = 0;  ///< version of the roster that the lead has seen
  Instant again_at_{};       ///< no earlier than this
  bool is_last_ = false;
};

}  // namespace tw::swarm
