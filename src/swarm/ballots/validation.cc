// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/validation.h"

#include <algorithm>
#include <set>

#include "swarm/ballots/lineage.h"
#include "swarm/ballots/quorum.h"
#include "swarm/leases/batch.h"
#include "swarm/leases/batch_choice.h"

namespace tw::swarm {
namespace {

constexpr double kLongestNotice_s = 1e7;

/// Each microbatch of the next round goes to one peer, and each peer has one lease.
bool are_sound_ahead(const std::vector<wire::Contribution>& ahead, const TargetBatch& lease) {
  if (!lease.overlap) return ahead.empty();
  RangeSet free(Range{0, lease.microbatches()});
  std::set<PeerId> peers;
  return std::ranges::all_of(ahead, [&](const wire::Contribution& c) {
    const bool fits = c.slot == 0 && !c.microbatches.empty() && free.contains(c.microbatches);
    free.remove(c.microbatches);
    return fits && peers.insert(c.peer).second;
  });
}

/// The target batch sizes that it says are those that follow from what was measured.
bool is_sound_choice(const wire::Record& draft, const wire::Record& expected, const TargetBatch& lease) {
  if (!lease.chosen) return !draft.batch;
  return draft.batch && draft.batch->samples == expected.batch->samples &&
         draft.batch->next == next_batch_size(*draft.batch, lease);
}

}  // namespace

std::string fault_of(const wire::Record& draft, const wire::Record& head, const LeaseBook::Options& lease) {
  if (draft.run != head.run || draft.round != head.round + 1) return "a plan of another round";
  const wire::Record expected = record_after(head, lease);
  if (draft.carried != expected.carried || draft.left != expected.left ||
      draft.first_sample != expected.first_sample)
    return "a plan of other samples than those of the round";
  if (draft.members.empty()) return "a record without members";
  wire::Record counted = draft;
  continue_lineage(counted, head);
  if (counted.majority_samples != draft.majority_samples || counted.awaited != draft.awaited)
    return "a record that miscounts what a majority decided";
  if (counted.had_company != draft.had_company || counted.restarts != draft.restarts)
    return "a record that says of its history what is not so";
  if (!is_sound_choice(draft, expected, lease))
    return "a record whose target batch size does not follow from what was measured";
  const TargetBatch batch = lease.of(draft);
  const std::uint64_t total = batch.microbatches();
  std::vector<Range> all;
  for (const wire::Contribution& c : draft.contributors) {
    const std::vector<Range>& ranges = c.microbatches.ranges();
    const bool within = !ranges.empty() && ranges.back().first < total && ranges.back().end() <= total;
    if (c.slot >= wire::kMostSlots || !within)
      return "a contribution of microbatches that the round does not have";
    if (c.samples != batch.samples(c.microbatches))
      return "a contribution that claims other samples than its own";
    all.insert(all.end(), ranges.begin(), ranges.end());
  }
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  RangeSet done;
  std::uint64_t next = 0;
  for (const Range& range : all) {
    if (range.first < next) return "a contribution of microbatches that another one has already";
    next = range.end();
    done.add(range);
  }
  if (draft.samples != batch.samples(done)) return "a plan of other samples than those of its contributions";
  if (!may_leave_over(draft, lease)) return "a plan that lacks microbatches of the round";
  return are_sound_ahead(draft.ahead, lease.after(draft)) ? std::string()
                                                          : "leases of the next round that overlap";
}

bool is_sound(const wire::Progress& progress, const LeaseBook::Options& lease) {
  const std::uint64_t most = lease.most_microbatches();  // a message may be of another round
  const auto too_many = [&](const RangeSet& set) { return set.ranges().size() > most; };
  const auto is_rate = [](double rate) { return rate >= 0 && rate <= wire::kMostBytesPerS; };
  if (progress.ballot > kHighestBallot) return false;
  if (progress.grain == 0 || progress.grain > most) return false;
  const wire::Bandwidth& line = progress.bandwidth;
  const bool line_is_sound = is_rate(line.up_bytes_per_s) && is_rate(line.down_bytes_per_s) &&
                             line.slow.size() <= wire::kMostSlowPairs &&
                             std::ranges::all_of(line.slow, is_rate, &wire::PairRate::bytes_per_s);
  const bool leaves_soundly = progress.leaves_in_s >= 0 && progress.leaves_in_s <= kLongestNotice_s &&
                              progress.seats.size() <= wire::kMostSlots;
  return line_is_sound && leaves_soundly && progress.slots.size() <= wire::kMostSlots &&
         std::none_of(progress.slots.begin(), progress.slots.end(),
                      [&](const wire::SlotProgress& s) { return too_many(s.done) || too_many(s.held); });
}

bool is_sound(const wire::Failures& failures, const LeaseBook::Options& lease) {
  const RangeSet all(Range{0, lease.microbatches()});
  return failures.why.size() <= wire::kMostFailureBytes && all.contains(failures.microbatches) &&
         failures.microbatches.contains(failures.skippable);
}

bool is_sound(const wire::Entrust& entrust, const LeaseBook::Options& lease) {
  std::set<std::uint32_t> slots;
  const auto is_sum = [&](const wire::SlotProgress& slot) {
    const bool fits = !slot.done.empty() && slot.held.empty() &&
                      slot.done.ranges().size() <= lease.microbatches() &&
                      slot.done.ranges().back().end() <= lease.microbatches();
    return fits && slots.insert(slot.slot).second;
  };
  return entrust.promised <= kHighestBallot && entrust.slots.size() <= wire::kMostSlots &&
         entrust.seats.size() <= wire::kMostSlots && std::ranges::all_of(entrust.slots, is_sum);
}

}  // namespace tw::swarm
