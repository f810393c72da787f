// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "wire/status.h"

namespace tw::peer {

/// The place where all live peers of a run meet (tw_barrier): where each of them stands, by its statuses. A
/// peer that came later counts its barriers as the others do. Pure.
class Barrier {
 public:
  /// This peer comes to the next one. others: those that are here now.
  void arrive(Instant now, const std::vector<PeerId>& others);

  bool stands() const { return own_.stands; }

  /// Those of `others` that have not come to where this peer stands.
  std::vector<PeerId> awaited(const std::vector<PeerId>& others) const;

  /// This peer goes on.
  void pass();

  /// Barriers that this peer has left behind.
  std::uint64_t passed() const { return passed_; }

  /// How long it has waited, when that is news for the log: after 4 s, then each time half as long again.
  std::optional<Duration> news_of_wait(Instant now);

  const wire::BarrierWord& word() const { return own_; }

  void take(PeerId from, const wire::BarrierWord& word) { told_[from] = word; }

 private:
  wire::BarrierWord told_by(PeerId peer) const;

  wire::BarrierWord own_;
  std::map<PeerId, wire::BarrierWord> told_;  ///< bounded by the peers whose statuses are taken
  std::uint64_t passed_ = 0;
  Instant since_{};
  Duration told_after_{};
};

/// "waiting for peers 2, 3: the barrier that all reach"
std::string text_of_barrier(const std::vector<PeerId>& awaited);

}  // namespace tw::peer
