// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>

#include "swarm/ballots/acceptor.h"
#include "swarm/ballots/history.h"
#include "swarm/ballots/last_round.h"
#include "swarm/lead.h"
#include "swarm/members/farewell.h"
#include "swarm/members/membership.h"
#include "swarm/members/part.h"
#include "swarm/swarm_options.h"

namespace tw::swarm {

/// The leader of the round under way, and this peer's own lead while it is the one (docs/protocol.md). When a
/// leader dies, the next member in the order of the record bids higher; what was accepted from the dead one
/// comes back in the promises of the others (Proposer).
///
/// A peer has at most one lead, for the round after its head. The lead ends with the round, with a higher
/// ballot, or when a member that is less reluctant is here.
class Leading {
 public:
  /// What it decides by, at the time of a call.
  struct View {
    Instant now;
    const SwarmOptions& options;
    const History& history;
    const Membership& membership;
    const Acceptor& acceptor;
    const Part& part;
    const Farewell& farewell;
    const LastRound& last_round;

    const wire::Record& head() const { return *history.head(); }
  };

  /// Null while another peer leads, or none.
  Lead* lead() { return lead_ ? &*lead_ : nullptr; }

  const Lead* lead() const { return lead_ ? &*lead_ : nullptr; }

  /// Leads from now on if it is this peer's turn. Returns its ballot then. acceptor: that of the view.
  std::optional<Ballot> consider(const View& view, Acceptor& acceptor);

  /// Gives up a lead when a higher ballot is known, it resigned, or another member should lead.
  void leave_a_lost_one(const View& view, Acceptor& acceptor);

  /// The lead takes a step, with the peers that are here.
  void step(const View& view);

  /// It is over. The next one may begin at once.
  void end() { lead_.reset(); }

  void begin_round() { again_at_ = {}; }

  /// The round of this peer's present or next lead is the last one.
  void end_run() { is_last_ = true; }

 private:
  std::optional<Lead> lead_;
  std::uint64_t knows_ = 0;  ///< version of the roster that the lead has seen
  Instant again_at_{};       ///< no earlier than this
  bool is_last_ = false;
};

/// The member that the round under way follows: the owner of the promised ballot, or the first one that is
/// here.
std::optional<PeerId> leader_of(const History& history, const Membership& membership,
                                const Acceptor& acceptor);

/// This peer should lead but does not yet: another one may still do so.
Wait wait_to_lead(const Leading::View& view);

/// Anchors among the linked peers and this one.
std::set<PeerId> anchors_of(const Membership& membership, const SwarmOptions& options);

}  // namespace tw::swarm
