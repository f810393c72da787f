// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/batch_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::sim {
namespace {

/// Work for a second of averaging: 5 % of the time go to it, or it is hidden with a reserve.
double work_for_averaging(bool overlaps) { return overlaps ? 1.25 : 19; }

}  // namespace

std::uint64_t ChosenBatches::expected_after(const wire::BatchChoice& batch) const {
  const auto [least, most] = *rules_.batch.chosen;
  const std::uint64_t present = batch.samples == 0 ? least : batch.samples;
  if (batch.averaging_s == 0 || batch.samples_per_s == 0) return present;
  const double wanted = batch.averaging_s * batch.samples_per_s * work_for_averaging(rules_.overlaps());
  std::uint64_t samples = least;
  const auto fits = [&] { return static_cast<double>(samples) >= wanted && samples >= batch.at_once; };
  while (samples < most && !fits()) samples += rules_.batch.microbatch;
  if (10 * std::max(samples, present) - 10 * std::min(samples, present) <= present) return present;
  std::uint64_t half = present - present / 2;
  while (half % rules_.batch.microbatch != 0) ++half;
  return std::clamp(samples, half, std::min(2 * present, most));
}

void ChosenBatches::on_commit(const Sighting& s) {
  const wire::Record& record = s.record;
  if (!seen_.insert(s.digest).second) return;
  if (record.batch.has_value() != rules_.batch.chosen.has_value())
    return violated(
        fmt::format("round {}: a record {} a chosen batch", record.round, record.batch ? "with" : "without"));
  if (!record.batch || record.round == 0) return;
  const wire::Record* before = ledger_.find(record.parent);
  if (before != nullptr && before->batch && before->round + 1 == record.round) {
    std::uint64_t due = before->batch->next;  // what larger rounds left over has room
    while (due < record.carried.count()) due += rules_.batch.microbatch;
    if (due != record.batch->samples)
      violated(fmt::format("round {}: a target batch of {} samples, the record before it makes it {}",
                           record.round, record.batch->samples, due));
  }
  const std::uint64_t expected = expected_after(*record.batch);
  if (record.batch->next != expected)
    violated(
        fmt::format("round {}: says {} samples for the next round; from {} samples, {:g} s of averaging, "
                    "{:g} samples/s and {} at once follow {}",
                    record.round, record.batch->next, record.batch->samples, record.batch->averaging_s,
                    record.batch->samples_per_s, record.batch->at_once, expected));
}

}  // namespace tw::sim
