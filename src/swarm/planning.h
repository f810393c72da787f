// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/time.h"
#include "swarm/ballots/shared_plan.h"
#include "swarm/members/peer_status.h"
#include "swarm/shares/division.h"

namespace tw::swarm {

/// How the plans of one round divide the vector among their participants. The first plan divides it by
/// bandwidth. Later ones keep shares and sites as far as they can, since contributions that were sent stay
/// useful only where their owner stays.
class Planning {
 public:
  struct Options {
    std::uint64_t segments = 0;
    DivisionOptions division{};
    std::vector<wire::Share> shares_before{};  ///< of the last round
  };

  /// status: outlives it.
  Planning(Options options, const PeerStatus& status) : options_(std::move(options)), status_(status) {}

  /// Contributions that were sent by the former leader's plan stay useful.
  void go_on_after(const wire::Plan& former);

  /// For a plan whose contributions are new. proposed: the last plan of this ballot, if any.
  void divide(wire::Plan& plan, const SharedPlan& proposed);

  /// Participants came or went.
  void mend(wire::Plan& plan) const;

  /// The contributions stay as they are, since each of `keepers` has their whole mean: shares of other owners
  /// go to them. is_fresh: owners that stay have, or will have, what they need for their own share.
  void serve_sealed(wire::Plan& plan, const std::set<PeerId>& keepers, bool is_fresh) const;

  /// The slow peer still sends what it owes; others reduce what is missing of its share. Once some peer has
  /// the whole mean (keepers), the rest comes from there: a contribution may exist nowhere else any more.
  /// False, without effect, if nobody could take these segments.
  bool relieve(wire::Plan& plan, PeerId slow, const RangeSet& moves, const std::set<PeerId>& keepers);

  /// Lower bound in seconds of averaging by this plan; 0 when no bandwidth is known.
  double least_reduce_s(const wire::Plan& plan) const;

  /// usual: of recent rounds.
  Duration expected_reduce(const wire::Plan& plan, Duration usual) const;

 private:
  std::vector<Participant> participants(const wire::Plan& plan) const;

  Options options_;
  const PeerStatus& status_;
  SharedPlan called_;      // the previous plan of this round, if any
  bool relieved_ = false;  // a share of the plan was moved: its owner may lack
                           // what others have sealed
};

}  // namespace tw::swarm
