// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "monitor/board.h"
#include "monitor/fold/seen.h"

namespace tw::monitor {

/// What became of the samples that were leased to peers which went.
class Ledger {
 public:
  /// from_lost: others count its writer out.
  void take(const Seen& seen, bool from_lost);

  /// The ledger of a run whose means hold so many samples.
  SampleLedger board(std::uint64_t committed) const;

 private:
  static constexpr std::size_t kMostOpen = 4096;  ///< of which leaders may speak once more

  void take_reissue(const Seen& seen);

  std::uint64_t microbatch_ = 0;  ///< samples of one; 0: not known
  std::uint64_t handed_over_ = 0;
  /// Microbatches given out again, by round and peer: two leaders of a round may both say it of a peer.
  std::map<std::pair<Round, PeerId>, std::uint64_t> again_;
  std::uint64_t again_before_ = 0;  ///< those that are no longer in again_
};

}  // namespace tw::monitor
