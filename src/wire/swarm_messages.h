// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/bandwidth.h"
#include "wire/link_messages.h"
#include "wire/record.h"

/// Leadership, leases and decisions: the control messages of swarm/.
namespace tw::wire {

struct SlotProgress {
  std::uint32_t slot = 0;
  RangeSet done;
  RangeSet held;  ///< leased, not done yet

  static void fields(auto& self, auto&& field) { field(self.slot, self.done, self.held); }

  bool operator==(const SlotProgress&) const = default;
};

/// To the leader: where the sender stands in this round. The first one of a round says that the previous
/// update is applied.
struct Progress {
  Round round = 0;
  Ballot ballot = 0;
  Digest parameters;  ///< with which this round begins here
  double samples_per_s = 0;
  std::uint64_t grain = 1;  ///< microbatches that the sender computes at once
  std::vector<SlotProgress> slots;
  bool wants_more = false;
  bool gave_back = false;  ///< what is leased to the sender beyond held and done will not be done there
  bool leaving = false;
  bool called =
      false;  ///< a plan of this round is here; in a Promise that tells of a vote: its mean still is
  /// With overlap: its state is beyond the parameters with which the round began. It takes leases for those
  /// of the next round alone (Lease::moved_on).
  bool moved_on = false;
  Bandwidth bandwidth;
  Outlook outlook = Outlook::steady;
  double leaves_in_s = 0;     ///< if the outlook is `leaves`
  std::vector<PeerId> seats;  ///< of members that left in this round: the sender votes for them
  bool gave_seat = false;     ///< another peer has the sender's own seat: it decides nothing in this round
  /// What its program wanted with its last gradient (Record::settings), which is of this round if any slot
  /// has something done. Empty: nothing.
  std::string settings;

  static void fields(auto& self, auto&& field) {
    field(self.round, self.ballot, self.parameters, self.samples_per_s, self.grain, self.slots,
          self.wants_more, self.gave_back, self.leaving, self.called, self.moved_on, self.bandwidth,
          self.outlook, self.leaves_in_s, self.seats, self.gave_seat, self.settings);
  }

  bool operator==(const Progress&) const = default;
};

/// From the leader: accumulate these microbatches too, into this slot.
struct Lease {
  Round round = 0;
  Ballot ballot = 0;
  std::uint32_t slot = 0;
  RangeSet microbatches;
  /// Leases and recalls of a ballot are numbered in their order: what was recalled is not leased by a message
  /// that is repeated.
  std::uint32_t number = 0;
  /// With overlap: the round was called, and its sums are lost. These are for the parameters with which the
  /// next round begins.
  bool moved_on = false;

  static void fields(auto& self, auto&& field) {
    field(self.round, self.ballot, self.slot, self.microbatches, self.number, self.moved_on);
  }

  bool operator==(const Lease&) const = default;
};

/// From the leader: give back what you have not begun (answered by Progress).
struct Recall {
  Round round = 0;
  Ballot ballot = 0;
  std::uint32_t number = 0;  ///< as in Lease

  static void fields(auto& self, auto&& field) { field(self.round, self.ballot, self.number); }

  bool operator==(const Recall&) const = default;
};

/// Segments [first, first + count) of the vector are reduced by owner.
struct Share {
  PeerId owner;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool sealed = false;  ///< owner has the mean of these segments, finished: send no contributions

  static void fields(auto& self, auto&& field) { field(self.owner, self.first, self.count, self.sealed); }

  bool operator==(const Share&) const = default;
};

/// One site of a plan: its contributions go to the owners of `shares`. These send the site-local sum to the
/// roots (Plan::shares) and pass the mean on to the members.
struct SitePlan {
  std::vector<PeerId> members;
  /// Cover the vector, owned by members; none without members. Sealed: the root has this site's part already.
  std::vector<Share> shares;

  static void fields(auto& self, auto&& field) { field(self.members, self.shares); }

  bool operator==(const SitePlan&) const = default;
};

/// The call: how this step is averaged. A later (ballot, version) replaces an earlier one.
struct Plan {
  Ballot ballot = 0;
  std::uint32_t version = 0;
  Record draft;                      ///< the record as it will be committed, without the digest of the mean
  std::vector<Share> shares;         ///< cover the vector in order; with `sites`: those of the roots
  std::vector<PeerId> participants;  ///< peers that get the mean
  double expected_s = 0;             ///< expected time of averaging; 0: not known
  /// Each participant is in one; Contribution::group indexes them. Empty: all are in one, with `shares`.
  std::vector<SitePlan> sites;

  StepId step() const { return {draft.round, draft.parent.high}; }

  static void fields(auto& self, auto&& field) {
    field(self.ballot, self.version, self.draft, self.shares, self.participants, self.expected_s, self.sites);
  }

  bool operator==(const Plan&) const = default;
};

/// To the leader: the sender has the whole mean of the plan and takes no older plan from now on.
struct Vote {
  StepId step;
  Ballot ballot = 0;
  std::uint32_t version = 0;
  Digest mean;
  std::vector<PeerId> seats;  ///< seats for which the vote counts, too (Progress::seats)

  static void fields(auto& self, auto&& field) {
    field(self.step, self.ballot, self.version, self.mean, self.seats);
  }

  bool operator==(const Vote&) const = default;
};

/// From a member that takes over the lead: follow no lower ballot, and report what you know.
struct Prepare {
  Round round = 0;
  Ballot ballot = 0;

  static void fields(auto& self, auto&& field) { field(self.round, self.ballot); }

  bool operator==(const Prepare&) const = default;
};

/// A plan that the sender voted for, with the mean of its vote.
struct Accepted {
  Plan plan;
  Digest mean;

  static void fields(auto& self, auto&& field) { field(self.plan, self.mean); }

  bool operator==(const Accepted&) const = default;
};

struct Promise {
  Ballot ballot = 0;
  Progress progress;
  std::optional<Plan> plan;          ///< the latest plan that arrived
  std::optional<Accepted> accepted;  ///< the latest plan that it voted for

  static void fields(auto& self, auto&& field) {
    field(self.ballot, self.progress, self.plan, self.accepted);
  }

  bool operator==(const Promise&) const = default;
};

struct Commit {
  Record record;

  static void fields(auto& self, auto&& field) { field(self.record); }

  bool operator==(const Commit&) const = default;
};

/// From the leader, to a peer that leaves before the round ends: send your sums to `to`.
struct HandOver {
  Round round = 0;
  Ballot ballot = 0;
  PeerId to;
  bool released = false;    ///< the sums are there: you may go
  double round_left_s = 0;  ///< the reason: expected rest of the round; 0: not known
  double transfer_s = 0;    ///< the reason: expected time of the transfer

  static void fields(auto& self, auto&& field) {
    field(self.round, self.ballot, self.to, self.released, self.round_left_s, self.transfer_s);
  }

  bool operator==(const HandOver&) const = default;
};

/// From a leaving peer, when its sums are on their way (EntrustedSum): from now on they and the seats are the
/// receiver's. The sender neither promises nor votes any more in this round.
struct Entrust {
  Round round = 0;
  Ballot promised = 0;              ///< by the sender: no lower ballot may be followed for its seat
  std::vector<SlotProgress> slots;  ///< of the sender; held is empty
  std::vector<PeerId> seats;        ///< its own if it is a member, and those that it kept

  static void fields(auto& self, auto&& field) { field(self.round, self.promised, self.slots, self.seats); }

  bool operator==(const Entrust&) const = default;
};

enum class StallCause : std::uint8_t {
  unreachable,        ///< the link between the two is gone
  owes_contribution,  ///< no byte from it although it owes a contribution: no other peer keeps it from
                      ///< sending; of oneself: its sum is another one than the plan counts on
  owes_site_sum,      ///< ... although it owes the mean of its site: it may itself wait for contributions
  owes_mean,          ///< ... although it owes a part of the mean: it may itself wait for those
  owes_copy,          ///< ... although it is to pass a part of the mean on: it may itself wait for that
  not_finite,         ///< its contribution holds NaN or infinity
  too_large,          ///< its contribution is beyond the norm cap of the run
  slow_contribution,  ///< bytes come, but too slowly: its contribution will be late by far
  slow_mean,          ///< the same for its part of the mean: it may itself wait for another peer
  send_again,         ///< to the suspect itself: it owes segments, and nothing has come for a long time
};

/// To the leader: a participant that keeps this step from finishing. To that one: send_again.
struct StallReport {
  StepId step;
  PeerId suspect;
  StallCause cause = StallCause::unreachable;
  RangeSet missing;  ///< for a slow one: segments of its share that the reporter lacks

  static void fields(auto& self, auto&& field) { field(self.step, self.suspect, self.cause, self.missing); }

  bool operator==(const StallReport&) const = default;
};

}  // namespace tw::wire
