// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "base/range_set.h"
#include "wire/limits.h"

namespace tw::wire {

/// A process, not a machine or a name: a process restarted with its old id has another incarnation. It knows
/// nothing of the former one's promises and votes, and is another member.
struct Member {
  PeerId peer;
  std::string address;
  std::uint64_t incarnation = 0;
  std::string site;  ///< provider:region:zone; empty: a site of its own

  static void fields(auto& self, auto&& field) {
    field(self.peer, self.address, self.incarnation, self.site);
  }

  bool is(const Member& other) const { return peer == other.peer && incarnation == other.incarnation; }

  bool operator==(const Member&) const = default;
};

/// A gradient sum over whole microbatches of one round, by one peer. A peer has one slot in an undisturbed
/// round, and another one each time that microbatches of a lost peer are leased again after the call.
struct Contribution {
  PeerId peer;
  std::uint32_t slot = 0;
  std::uint64_t samples = 0;
  RangeSet microbatches;    ///< numbers within the round
  std::uint32_t group = 0;  ///< those of one group (a site) are added first: average/reduction/reduction.h

  /// With overlap: leased after the call of its round.
  bool is_late() const { return slot >= kLateSlot && slot < kLeaseSlots; }

  static void fields(auto& self, auto&& field) {
    field(self.peer, self.slot, self.samples, self.microbatches, self.group);
  }

  bool operator==(const Contribution&) const = default;
};

/// With `training.target_batch_size: auto`: the target batch sizes of a record's round and of the next one,
/// and what the latter was chosen from (swarm/leases/batch_choice.h).
struct BatchChoice {
  std::uint64_t samples = 0;  ///< of the record's round; 0 for round 0
  std::uint64_t next = 0;     ///< of the round after it; more where it carries more
  double averaging_s = 0;     ///< measured: averaging of a round; 0: not known
  double samples_per_s = 0;   ///< measured: of all members; 0: not known
  std::uint64_t at_once = 0;  ///< samples that the members compute at once

  static void fields(auto& self, auto&& field) {
    field(self.samples, self.next, self.averaging_s, self.samples_per_s, self.at_once);
  }

  bool operator==(const BatchChoice&) const = default;
};

/// The decision of a committed round. Records form a chain by digest.
struct Record {
  Digest run;
  Round round = 0;
  Digest parent;                ///< of the record before; zero for round 0
  std::vector<Member> members;  ///< from the next round on: anchors first, then longest-lived first
  std::vector<Contribution> contributors;  ///< in the order in which the mean adds them
  RangeSet carried;  ///< samples of earlier rounds whose contributions were lost: they come first
  std::uint64_t first_sample = 0;  ///< of the run: the first one that no round before had
  std::uint64_t samples = 0;       ///< in the mean; 0 for round 0
  Digest parameters;               ///< before this round's update
  Digest mean;                     ///< of the mean gradient, decoded (average/reduction/mean_digest.h)
  /// Samples of its history that a majority decided (swarm/ballots/lineage.h).
  std::uint64_t majority_samples = 0;
  /// After a decision without a majority: members of the last record before it, until most of them take part
  /// again. Otherwise empty.
  std::vector<PeerId> awaited;
  bool minority = false;       ///< committed without a majority, after the configured patience
  bool last = false;           ///< the run ends with this record
  bool had_company = false;    ///< this record or one before it had two members or more
  std::uint32_t restarts = 0;  ///< how often its history was begun anew from one of its records
  /// A program's own text: settings of this update, such as rates set by hand. The engine only carries it.
  /// Empty: as in the round before.
  std::string settings;
  /// With overlap: samples that the round before left over. The next round carries them, since its work
  /// begins before it is known what this one leaves over.
  RangeSet left;
  /// With overlap: the leases with which the next round begins, while this one is averaged.
  std::vector<Contribution> ahead;
  /// Nothing where the target batch size is a fact of the run: then it takes no byte on the wire.
  std::optional<BatchChoice> batch;

  /// Samples in all means up to this one.
  std::uint64_t samples_total() const { return first_sample - carried.count() - left.count() + samples; }

  static void fields(auto& self, auto&& field) {
    field(self.run, self.round, self.parent, self.members, self.contributors, self.carried, self.first_sample,
          self.samples, self.parameters, self.mean, self.majority_samples, self.awaited, self.restarts,
          self.minority, self.last);
    field.flag_before(self.had_company, self.batch);
    field(self.settings, self.left, self.ahead);
  }

  bool operator==(const Record&) const = default;
};

}  // namespace tw::wire
