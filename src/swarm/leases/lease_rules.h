// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/range_set.h"
#include "wire/record.h"

namespace tw::swarm {

/// Samples of a round at least and at most, where the leader chooses them.
struct BatchBounds {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

/// A round that has this many samples, in microbatches of one size; the last one may be smaller.
struct TargetBatch {
  std::uint64_t target_batch_size = 0;  ///< samples; chosen: of the first round
  std::uint64_t microbatch = 0;         ///< samples
  bool exact_batches = false;           ///< RunOptions::exact_batches
  bool overlap = false;                 ///< RunOptions::overlaps()
  /// The leader of a round chooses the samples of the next one within these (batch_choice.h), whole
  /// microbatches; nothing: all rounds have target_batch_size.
  std::optional<BatchBounds> chosen{};

  /// That of the record's round.
  TargetBatch of(const wire::Record& record) const;

  /// That of the round after the record's.
  TargetBatch after(const wire::Record& record) const;

  std::uint64_t microbatches() const { return (target_batch_size + microbatch - 1) / microbatch; }

  /// Samples of any round at most.
  std::uint64_t most() const { return chosen ? chosen->most : target_batch_size; }

  std::uint64_t most_microbatches() const { return (most() + microbatch - 1) / microbatch; }

  std::uint64_t samples(const RangeSet& of) const;
};

/// The policy of a Leasing: how much work a round has, how it is cut, and when it may end.
struct LeaseRules {
  std::uint64_t microbatches = 0;  ///< of one round
  std::uint64_t microbatch = 0;    ///< samples of one
  std::function<std::uint64_t(const RangeSet& microbatches)> samples;
  /// Microbatches for a peer that asks. `part`: its part of the speed of all; `free`: free microbatches.
  std::function<std::uint64_t(double part, std::uint64_t free)> grant;
  /// True when a round with these samples and contributors may end and leave the rest to the next one.
  std::function<bool(const wire::Record& record)> may_leave_over;
  /// Peers compute for the next round once this one is called: what is lost after that is left over.
  bool overlap = false;
};

/// A round ends with a target batch. Leases are cut by guided self-scheduling: each grant is half of a peer's
/// fair part of what is free, so that grants shrink towards the end and peers of any speed finish together.
LeaseRules rules_of(const TargetBatch& batch);

}  // namespace tw::swarm
