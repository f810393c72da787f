// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "swarm/leases/lease_rules.h"
#include "wire/record.h"

/// The samples of a round: those that earlier rounds left over, then new ones, a target batch size in all.
/// Microbatch k has the samples from position k x microbatch on, in ascending order.
namespace tw::swarm {

/// The samples of this record's round, of which its microbatches are made.
RangeSet batch_of(const wire::Record& record, const TargetBatch& lease);

/// The samples of these microbatches of the record's round.
RangeSet samples_of(const wire::Record& record, const RangeSet& microbatches, const TargetBatch& lease);

/// True when the rest of this record's batch may be left to the next round: at most half, not in the last
/// round, and not where batches are exact. All of it may where a peer has used its last slot (kLeaseSlots):
/// after so many calls, perhaps no peer can compute the rest. With overlap, any part of it may be left, to
/// the round after the next one.
bool may_leave_over(const wire::Record& record, const TargetBatch& lease);

/// The record of the round after `head`, with only its run, round and samples set.
wire::Record record_after(const wire::Record& head, const TargetBatch& lease);

}  // namespace tw::swarm
