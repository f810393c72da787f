// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/ledger.h"

#include <algorithm>

namespace tw::monitor {

void Ledger::take_reissue(const Seen& seen) {
  const std::uint64_t microbatches = seen.count("microbatches");
  if (!seen.event().peer || microbatches == 0) return;
  std::uint64_t& most = again_[{seen.event().round, *seen.event().peer}];
  most = std::max(most, microbatches);
  if (again_.size() <= kMostOpen) return;
  again_before_ += again_.begin()->second;
  again_.erase(again_.begin());
}

void Ledger::take_skip(const Seen& seen) {
  if (!number_in(seen.event(), "sample")) return;
  skipped_.insert(seen.count("sample"));
  if (skipped_.size() <= kMostOpen) return;
  ++skipped_before_;
  skipped_.erase(skipped_.begin());
}

void Ledger::take(const Seen& seen, bool from_lost) {
  switch (seen.event().phase) {
    case world::Phase::start:
      if (const std::uint64_t samples = seen.count("microbatch"); samples > 0) microbatch_ = samples;
      break;
    case world::Phase::handover:
      if (seen.event().peer) handed_over_ += seen.count("samples");
      break;
    case world::Phase::reissue:
      if (!from_lost) take_reissue(seen);
      break;
    case world::Phase::skip:
      take_skip(seen);
      break;
    default:
      break;
  }
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
