// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "swarm/announcing.h"
#include "swarm/swarm_core.h"

namespace tw::swarm {

/// This peer's part in the round under way: the leases that it gets and computes, and the plan by which it
/// averages. It does what the leader says whose ballot it follows, even where that is this very peer. Where
/// it cannot go on from its state, it returns the CatchUp that is due.
class Following {
 public:
  /// Both outlive it.
  Following(SwarmCore& core, Announcing& announcing) : core_(core), announcing_(announcing) {}

  // ---- from a leader
  /// True if `from` leads with this ballot, and no higher one was promised. It hears of a higher one.
  bool may_follow(PeerId from, Ballot ballot);

  std::optional<CatchUp> take(PeerId from, const wire::Lease& lease);
  std::optional<CatchUp> take(PeerId from, const wire::Plan& plan);
  void take(PeerId from, const wire::Recall& recall);
  void take(PeerId from, const wire::Prepare& prepare);

  // ---- from the owner
  /// Work that may be computed now, at most `most` microbatches.
  std::optional<WorkItem> begin_work(std::uint64_t most);

  /// All functions return false when the item is of another round.
  bool finish_work(const WorkItem& item, const Finished& finished);
  bool give_back(const WorkItem& item, const std::optional<FailedSample>& failed);

  /// Others hear at once: this peer may be the one that leads. False when this is nothing new.
  bool set_presence(wire::Presence presence);

  /// To the leader.
  void report_stall(PeerId suspect, wire::StallCause cause, RangeSet missing);

 private:
  void look_ahead(const wire::Record& draft);
  void do_what_counts(PeerId leader, const wire::Contribution& own);
  void give_back_queued();
  WorkItem with_samples(WorkItem item) const;
  wire::Record record_of(Round round) const;

  SwarmCore& core_;
  Announcing& announcing_;
};

}  // namespace tw::swarm
