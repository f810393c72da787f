// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/batch.h"

#include <algorithm>

#include "base/check.h"
#include "wire/limits.h"

namespace tw::swarm {
namespace {

/// The part of the round's batch that no contribution has.
RangeSet left_over(const wire::Record& record, const TargetBatch& lease) {
  const TargetBatch batch = lease.of(record);
  if (record.round == 0 || record.samples >= batch.target_batch_size) return {};
  RangeSet missing(Range{0, batch.microbatches()});
  for (const wire::Contribution& c : record.contributors) missing.remove(c.microbatches);
  return samples_of(record, missing, lease);
}

std::uint64_t new_samples(const wire::Record& record, const TargetBatch& lease) {
  const std::uint64_t samples = lease.of(record).target_batch_size;
  return samples - std::min(samples, record.carried.count());
}

/// As chosen, or more: what earlier, larger rounds left over has room.
std::uint64_t size_after(const wire::Record& head, const RangeSet& carried, const TargetBatch& lease) {
  const std::uint64_t chosen = head.batch ? head.batch->next : lease.target_batch_size;
  return std::max(chosen, (carried.count() + lease.microbatch - 1) / lease.microbatch * lease.microbatch);
}

}  // namespace

RangeSet batch_of(const wire::Record& record, const TargetBatch& lease) {
  RangeSet samples = record.carried;
  samples.add({record.first_sample, new_samples(record, lease)});
  return samples;
}

RangeSet samples_of(const wire::Record& record, const RangeSet& microbatches, const TargetBatch& lease) {
  RangeSet places;
  for (const Range& range : microbatches.ranges())
    places.add({range.first * lease.microbatch, range.count * lease.microbatch});
  return batch_of(record, lease).at(places);
}

bool may_leave_over(const wire::Record& record, const TargetBatch& lease) {
  const std::uint64_t samples = lease.of(record).target_batch_size;
  const std::uint64_t lacks = samples - std::min(samples, record.samples);
  const auto is_in_the_last_slot = [](const wire::Contribution& c) {
    return c.slot + 1 == wire::kLeaseSlots;
  };
  if (lacks == 0 || std::ranges::any_of(record.contributors, is_in_the_last_slot)) return true;
  if (lease.overlap) return record.samples > 0 && !record.last;
  return lacks <= record.samples && !record.last && !lease.exact_batches;
}

wire::Record record_after(const wire::Record& head, const TargetBatch& lease) {
  wire::Record next;
  next.run = head.run;
  next.round = head.round + 1;
  (lease.overlap ? next.left : next.carried) = left_over(head, lease);
  if (lease.overlap) next.carried = head.left;
  if (lease.chosen) next.batch = wire::BatchChoice{.samples = size_after(head, next.carried, lease)};
  if (head.round > 0) next.first_sample = head.first_sample + new_samples(head, lease);
  TW_CHECK(next.carried.empty() || next.carried.ranges().back().end() <= next.first_sample);
  return next;
}

}  // namespace tw::swarm
