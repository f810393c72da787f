// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "swarm/leases/lease_rules.h"
#include "wire/record.h"

/// `training.target_batch_size: auto`. The leader of round n chooses the samples of round n + 1 when it calls
/// round n, and record n says them, with what was measured. So the choice is decided like all of the record,
/// and the leases with which round n + 1 begins (wire::Record::ahead) are of the batch that it says.
namespace tw::swarm {

/// The first bounds as whole microbatches, one at least: the lower one rounded up, the upper one down.
BatchBounds in_microbatches(BatchBounds bounds, std::uint64_t microbatch);

/// A choice that differs from the samples of the present round by less than this part leaves them as they
/// are.
inline constexpr double kDamping = 0.1;

/// The samples of the next round, from what was measured: the fewest whose work hides the averaging (with
/// overlap) or is 19 times as long (base/averaging_wait.h), and which keep all members busy. At most twice,
/// at least half of those of the present round, within the bounds. Where nothing is measured, as in the
/// present round. A function of its arguments alone: each peer gets the same samples from the record.
/// Requires batch.chosen.
std::uint64_t next_batch_size(const wire::BatchChoice& measured, const TargetBatch& batch);

}  // namespace tw::swarm
