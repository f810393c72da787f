// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/logs/event_log_json.h"

namespace tw::cli {

/// What the event log of a peer that trained alone says of its program.
struct MeasuredPeer {
  double samples_per_s = 0;  ///< while it accumulates: the median of the rounds
  double spread = 1;         ///< 80 % of the rounds are within this factor of it
  int rounds = 0;            ///< that count
  int warm_up = 0;           ///< before them, which do not
  double parameters = 0;
  double tensors = 1;
  double state_bytes = 0;
  double peak_memory_bytes = 0;  ///< resident
  std::string hardware{};        ///< processor and cores
};

/// Rounds that do not count: programs compile, and fill their caches.
inline constexpr int kWarmUpRounds = 3;
/// Rounds that have to count.
inline constexpr int kLeastRounds = 3;

/// Measures a peer by the entries of its log.
class PeerMeter {
 public:
  void take(const monitor::LogEntry& entry);

  /// Committed so far, also those that do not count.
  int rounds() const { return rounds_; }

  /// The error says that there were too few rounds.
  Result<MeasuredPeer> measured() const;

 private:
  MeasuredPeer facts_;  ///< without the speed
  std::vector<double> speeds_;
  int rounds_ = 0;
};

}  // namespace tw::cli
