// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/time.h"
#include "sim/checkers.h"
#include "sim/storm_faults.h"
#include "world/events.h"

namespace tw::v1 {

/// The scenario of this name: peers of different speeds behind different lines train while peers are killed,
/// come, go, stop, and are cut off. All that is not given here is drawn from the seed.
struct StormOptions {
  int peers = 8;
  int most_peers = 24;  ///< that ever come
  FaultOptions faults;
  /// Deaths are spaced so that most of the members of every record that may come to be decided live on: then
  /// no round can be lost, and the run must come to its end. Without it one member of each lives on, and goes
  /// on alone after the patience.
  bool keep_majority = true;
  /// RunOptions::patience; long, so that nobody goes on alone while faults last.
  Duration patience = std::chrono::seconds(600);
  /// How long the run may take from the last fault to its end.
  Duration calm_limit = std::chrono::seconds(120);
  bool keep_stale_seals = false;
  bool keep_lines = false;
};

struct SimReport {
  std::uint64_t seed = 0;
  Digest history;
  std::vector<Violation> violations;
  std::vector<std::string> lines;       ///< of the history, with keep_lines
  Round rounds = 0;                     ///< of the newest record
  std::map<FaultKind, int> faults;      ///< that struck
  std::map<Phase, int> kills_by_phase;  ///< last phase that the victim reached in its round
  int leader_kills = 0;
  int minority_records = 0;
  std::uint64_t events = 0;
  Duration simulated{};
};

SimReport run_storm(std::uint64_t seed, const StormOptions& options);

/// Several lines: what was violated, and the seed that shows it again.
std::string to_string(const SimReport& report);

}  // namespace tw::v1
