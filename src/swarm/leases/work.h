// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/range_set.h"
#include "base/time.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Microbatches to compute at once, into one slot.
struct WorkItem {
  Round round = 0;
  std::uint32_t slot = 0;
  RangeSet microbatches{};
  RangeSet samples{};  ///< of the run
  /// Samples that are leased to this peer beside these, as far as known: time to load them. They may still go
  /// to others.
  RangeSet ahead{};
  /// With overlap: the update of the round before comes first.
  bool moved_on = false;
  /// Nothing of the slot counts as done: its sum begins at zero.
  bool afresh = false;
  /// No peer has all of these samples, and this one said that it can do without (FailedSample::skippable).
  bool skips = false;
};

/// What was computed of an item.
struct Finished {
  std::uint64_t microbatches = 0;
  double samples_per_s = 0;
  std::string settings{};  ///< that the program wants for the update (wire::Record::settings)
};

/// A sample that cannot be computed here.
struct FailedSample {
  std::uint64_t sample = 0;  ///< of the run
  std::string why;           ///< with its object and bytes, and the answer
  bool skippable = false;    ///< wire::Failures
};

/// Leases of this peer in one round: what is queued, what is being computed, what is done.
/// At most one item is under way at a time.
class Work {
 public:
  explicit Work(Round round) : round_(round), failures_{round, {}, {}, {}} {}

  Round round() const { return round_; }

  /// A lease or recall arrived, with its ballot and number. False when a later one came before: it is an old
  /// one that somebody repeats, and what it leases may have been given to others.
  bool is_news(Ballot ballot, std::uint32_t number);

  /// False, without effect, when a closed slot would get something new. moved_on: wire::Lease::moved_on.
  bool lease(std::uint32_t slot, const RangeSet& microbatches, bool moved_on = false);

  /// Something was leased after the call.
  bool has_moved_on() const { return !moved_on_.empty(); }

  /// The sum in this slot is being sent to others and must not change any more.
  void close(std::uint32_t slot) { closed_.insert(slot); }

  /// A sum of these microbatches by another peer is here. Returns its slot, or nothing if there is no slot.
  std::optional<std::uint32_t> keep(const RangeSet& microbatches);

  /// Slots with anything done, for a peer that takes them over: nothing is added to them any more. Requires
  /// that no item is under way.
  std::vector<wire::SlotProgress> hand_out();

  /// All sums are lost here, while others may have them: nothing counts as done any more, and no used slot is
  /// used again.
  void start_over();

  /// A microbatch that cannot be computed here.
  void fail(std::uint64_t microbatch, FailedSample failed);

  /// All failures of this round.
  const wire::Failures& failures() const { return failures_; }

  /// Gives back what has not begun.
  void drop_queued();

  /// Begins the next microbatches of a slot, at most `most`; nothing when some are under way or none is
  /// queued. Those that failed here come last and by themselves: no other peer can compute them.
  std::optional<WorkItem> begin(std::uint64_t most = 1);

  /// The first `done` of the microbatches under way are in their slot's sum; the others are queued again.
  void finish(std::uint64_t done);

  bool idle() const { return !under_way_; }

  bool is_under_way(const WorkItem& item) const {
    return under_way_ && under_way_->slot == item.slot && under_way_->microbatches == item.microbatches;
  }

  /// Nothing was ever begun.
  bool is_untouched() const { return !begun_; }

  /// Nothing is under way or queued.
  bool has_nothing_to_do() const { return idle() && queued_ == 0; }

  /// True when nothing is queued: time to ask for more, while the last ones are still computed.
  bool wants_more() const { return queued_ == 0; }

  /// Number of microbatches that have not begun.
  std::uint64_t queued() const { return queued_; }

  /// The same microbatches, as a set.
  RangeSet waiting() const;

  /// The same with those under way.
  RangeSet held() const;

  /// For messages: every slot with what is done and what is still held. A slot that takes no more of either
  /// is listed empty.
  std::vector<wire::SlotProgress> progress() const;

  /// True when these, and no others, are done in this slot, and nothing will be added to them.
  bool has_done_just(std::uint32_t slot, const RangeSet& microbatches) const;

  /// Each of these is done or held in this slot.
  bool does_all_of(std::uint32_t slot, const RangeSet& microbatches) const;

  /// The sum in this slot, if any, is or will be of other microbatches than these.
  bool has_other_than(std::uint32_t slot, const RangeSet& microbatches) const;

 private:
  Round round_;
  std::map<std::uint32_t, wire::SlotProgress> slots_;  // held includes what is under way
  std::set<std::uint32_t> closed_;
  std::set<std::uint32_t> moved_on_;  // slots leased after the call
  std::optional<WorkItem> under_way_;
  std::uint64_t queued_ = 0;
  bool begun_ = false;
  std::pair<Ballot, std::uint32_t> newest_{};  // lease or recall
  wire::Failures failures_;
};

}  // namespace tw::swarm
