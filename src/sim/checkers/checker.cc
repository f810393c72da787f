// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/checker.h"

#include <algorithm>

namespace tw::sim {

// Sample by sample: slower than what it judges, and plain.
std::vector<train::SampleSpan> samples_of(const wire::Record& record, const RangeSet& microbatches,
                                          const Rules& rules) {
  std::vector<std::uint64_t> batch;
  for (const Range range : record.carried.ranges()) {
    for (std::uint64_t i = 0; i < range.count; ++i) batch.push_back(range.first + i);
  }
  for (std::uint64_t next = record.first_sample; batch.size() < rules.batch_of(record); ++next)
    batch.push_back(next);
  std::vector<train::SampleSpan> spans;
  for (const Range range : microbatches.ranges()) {
    for (std::uint64_t i = range.first * rules.batch.microbatch; i < range.end() * rules.batch.microbatch;
         ++i) {
      if (i < batch.size()) spans.push_back({batch[i], 1});
    }
  }
  return spans;
}

bool has_member(const wire::Record& record, PeerId peer) {
  return std::any_of(record.members.begin(), record.members.end(),
                     [&](const wire::Member& member) { return member.peer == peer; });
}

}  // namespace tw::sim
