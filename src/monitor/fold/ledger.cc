// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/ledger.h"

#include <algorithm>

#include "monitor/report/report.h"

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

SampleLedger Ledger::board(std::uint64_t samples) const {
  std::uint64_t again = again_before_;
  for (const auto& [where, microbatches] : again_) again += microbatches;
  // Those of a round that is not committed yet may be told already.
  const std::uint64_t skipped = std::min(samples, skipped_before_ + skipped_.size());
  return {.committed = samples - skipped,
          .handed_over = handed_over_,
          .again = again * microbatch_,
          .skipped = skipped};
}

}  // namespace tw::monitor
