// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "swarm/leases/lease_rules.h"
#include "wire/record.h"

/// Which samples a round is about: those that earlier rounds left over, then new ones, a target batch size in
/// all. Microbatch k of the round is number k x microbatch and the following ones of them, counted from the
/// smallest.
namespace tw::swarm {

/// In the round of this record: what its microbatches are made of.
RangeSet batch_of(const wire::Record& record, const swarm::TargetBatch& lease);

/// The samples of these microbatches of the record's round.
RangeSet samples_of(const wire::Record& record, const RangeSet& microbatches,
                    const swarm::TargetBatch& lease);

/// True when what this record lacks of its batch, if anything, may be left to the next round: at most half,
/// not in the last round, and not where batches are exact. All of it may where a peer has used its last slot
/// (kLeaseSlots): such a round was called so often that nobody may be able to compute the rest.
bool may_leave_over(const wire::Record& record, const swarm::TargetBatch& lease);

/// The record of the round after `head`: its run, round and batch. Nothing else is set.
wire::Record record_after(const wire::Record& head, const swarm::TargetBatch& lease);

}  // namespace tw::swarm
