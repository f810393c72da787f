// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/lease_rules.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/leases/batch.h"

namespace tw::swarm {

TargetBatch TargetBatch::of(const wire::Record& record) const {
  TargetBatch batch = *this;
  if (chosen && record.batch) batch.target_batch_size = record.batch->samples;
  return batch;
}

TargetBatch TargetBatch::after(const wire::Record& record) const {
  return chosen ? of(record_after(record, *this)) : *this;
}

std::uint64_t TargetBatch::samples(const RangeSet& of) const {
  const std::uint64_t full = of.count() * microbatch;
  const std::uint64_t rest = target_batch_size % microbatch;
  const std::uint64_t last = target_batch_size / microbatch;
  return rest != 0 && of.contains(last) ? full - microbatch + rest : full;
}

LeaseRules rules_of(const TargetBatch& batch) {
  TW_CHECK(batch.microbatch > 0);
  return {
      .microbatches = batch.microbatches(),
      .microbatch = batch.microbatch,
      .samples = [batch](const RangeSet& microbatches) { return batch.samples(microbatches); },
      .grant =
          [](double part, std::uint64_t free) {
            const auto half = static_cast<std::uint64_t>(part * static_cast<double>(free) / 2);
            return std::max<std::uint64_t>(1, half);
          },
      .may_leave_over = [batch](const wire::Record& record) { return may_leave_over(record, batch); },
      .overlap = batch.overlap,
  };
}

}  // namespace tw::swarm
