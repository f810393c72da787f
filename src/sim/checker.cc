// SPDX-License-Identifier: Apache-2.0
#include "sim/checker.h"

#include <algorithm>

namespace tw {

std::vector<SampleSpan> samples_of(const Record& record, const RangeSet& microbatches,
                                   std::uint64_t microbatch) {
  std::vector<SampleSpan> spans;
  for (const Range range : microbatches.ranges()) {
    const std::uint64_t first = std::min(range.first * microbatch, record.samples);
    const std::uint64_t end = std::min(range.end() * microbatch, record.samples);
    spans.push_back({record.first_sample + first, end - first});
  }
  return spans;
}

bool has_member(const Record& record, PeerId peer) {
  return std::any_of(record.members.begin(), record.members.end(),
                     [&](const Member& member) { return member.peer == peer; });
}

}  // namespace tw
