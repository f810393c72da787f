// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/ledger.h"

#include <algorithm>

namespace tw::monitor {

void Ledger::take_reissue(const Seen& seen, std::uint64_t microbatches) {
  if (!seen.event().peer || microbatches == 0) return;
  std::uint64_t& most = again_[{seen.event().round, *seen.event().peer}];
  most = std::max(most, microbatches);
  if (again_.size() <= kMostOpen) return;
  again_before_ += again_.begin()->second;
  again_.erase(again_.begin());
}

void Ledger::take_skip(std::uint64_t sample) {
  skipped_.insert(sample);
  if (skipped_.size() <= kMostOpen) return;
  ++skipped_before_;
  skipped_.erase(skipped_.begin());
}

void Ledger::take(const Seen& seen, bool from_lost) {
  const world::Event& event = seen.event();
  if (const auto* start = event.as<event::Start>(); start && start->microbatch.value_or(0) > 0)
    microbatch_ = *start->microbatch;
  if (const auto* handover = event.as<event::Handover>(); handover && event.peer)
    handed_over_ += handover->samples.value_or(0);
  if (const auto* again = event.as<event::Reissue>(); again && !from_lost)
    take_reissue(seen, again->microbatches.value_or(0));
  if (const auto* skip = event.as<event::Skip>(); skip && skip->sample) take_skip(*skip->sample);
}

std::uint64_t Ledger::again() const {
  std::uint64_t again = again_before_;
  for (const auto& [where, microbatches] : again_) again += microbatches;
  return again;
}

std::optional<std::uint64_t> Ledger::again_of(Round round, PeerId peer) const {
  const auto found = again_.find({round, peer});
  return found == again_.end() ? std::nullopt : std::optional(found->second);
}

SampleLedger Ledger::word() const {
  return {.handed_over = handed_over_,
          .again = again() * microbatch_,
          .skipped = skipped_before_ + skipped_.size()};
}

void add(const SampleLedger& word, SampleLedger& sum) {
  sum.again += word.again;
  sum.handed_over += word.handed_over;
  sum.skipped += word.skipped;
}

void ToldLedger::take(const SampleLedger& word) {
  const bool is_another =
      word.again < now_.again || word.handed_over < now_.handed_over || word.skipped < now_.skipped;
  if (is_another) add(now_, ended_);
  now_ = word;
}

SampleLedger ToldLedger::word() const {
  SampleLedger sum = ended_;
  add(now_, sum);
  return sum;
}

SampleLedger ledger_of(const SampleLedger& word, std::uint64_t samples) {
  // Those of a round that is not committed yet may be told already.
  const std::uint64_t skipped = std::min(samples, word.skipped);
  return {.committed = samples - skipped,
          .handed_over = word.handed_over,
          .again = word.again,
          .skipped = skipped};
}

}  // namespace tw::monitor
