// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "monitor/board/board.h"
#include "monitor/fold/seen.h"

namespace tw::monitor {

/// What became of the samples that were leased to peers which went, and of those that nobody can compute: by
/// events, all of them or those of one peer.
class Ledger {
 public:
  /// from_lost: its writer counts as lost.
  void take(const Seen& seen, bool from_lost);

  /// What its events tell.
  SampleLedger word() const;

  /// Microbatches leased again.
  std::uint64_t again() const;

  /// The part of a peer that was lost in this round; nothing: no event tells it.
  std::optional<std::uint64_t> again_of(Round round, PeerId peer) const;

  /// Samples of a microbatch; 0: not known.
  std::uint64_t microbatch() const { return microbatch_; }

 private:
  static constexpr std::size_t kMostOpen = 4096;  ///< that leaders may report again

  void take_reissue(const Seen& seen, std::uint64_t microbatches);
  void take_skip(std::uint64_t sample);

  std::uint64_t microbatch_ = 0;  ///< samples of one; 0: not known
  std::uint64_t handed_over_ = 0;
  /// Microbatches leased again, by round and peer: two leaders of a round may both report a peer.
  std::map<std::pair<Round, PeerId>, std::uint64_t> again_;
  std::uint64_t again_before_ = 0;  ///< those that are no longer in again_
  /// By number: a cancelled round, a hand-over or a lost peer may report a sample twice.
  std::set<std::uint64_t> skipped_;
  std::uint64_t skipped_before_ = 0;  ///< those that are no longer in skipped_
};

/// What one peer told of its ledger, of all its processes.
class ToldLedger {
 public:
  /// Words come in the order of time; one with a lower count comes from another process.
  void take(const SampleLedger& word);

  SampleLedger word() const;

 private:
  SampleLedger ended_, now_;
};

void add(const SampleLedger& word, SampleLedger& sum);

/// The ledger of a run whose rounds took so many samples.
SampleLedger ledger_of(const SampleLedger& word, std::uint64_t samples);

}  // namespace tw::monitor
