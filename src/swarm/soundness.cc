// SPDX-License-Identifier: Apache-2.0
#include "swarm/soundness.h"

#include <algorithm>

namespace tw {

std::string fault_of(const Record& draft, const Record& head, const LeaseBook::Options& lease) {
  if (draft.run != head.run || draft.round != head.round + 1) return "a plan of another round";
  if (draft.first_sample != head.samples_total() || draft.samples != lease.target_batch_size)
    return "a plan of other samples than those of the round";
  if (draft.members.empty()) return "a record without members";
  const LeaseBook book(lease);
  RangeSet all(Range{0, lease.microbatches()});
  for (const Contribution& c : draft.contributors) {
    if (c.slot >= kMostSlots || c.microbatches.empty() || !all.contains(c.microbatches))
      return "a contribution of microbatches that the round does not have, or has already";
    if (c.samples != book.samples(c.microbatches))
      return "a contribution that claims other samples than its own";
    all.remove(c.microbatches);
  }
  return all.empty() ? std::string() : "a plan that lacks microbatches of the round";
}

bool is_sound(const Progress& progress, const LeaseBook::Options& lease) {
  const auto too_many = [&](const RangeSet& set) { return set.ranges().size() > lease.microbatches(); };
  return progress.slots.size() <= kMostSlots &&
         std::none_of(progress.slots.begin(), progress.slots.end(),
                      [&](const SlotProgress& s) { return too_many(s.done) || too_many(s.held); });
}

}  // namespace tw
