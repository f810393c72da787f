// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "sim/network.h"
#include "world/events.h"

namespace tw::v1 {

enum class FaultKind { kill, join, leave, stop, isolate, reset, slow };

/// Who is struck; a choice that nobody fits falls to any peer.
enum class Aim {
  any,
  leader,
  author,  ///< whoever wrote the event that the fault waited for
};

/// The fault waits for the first event of this phase in this round, by any peer.
struct Cue {
  Phase phase{};
  Round round = 0;
};

/// One thing that goes wrong. Values alone: who and what exactly follows from `choice` when it strikes.
struct Fault {
  FaultKind kind{};
  std::optional<Cue> cue{};
  Duration after{};  ///< the cue, or the start
  Aim aim = Aim::any;
  Duration lasts{};  ///< stop, isolate
  Death death = Death::clean;
  std::uint64_t choice = 0;
};

/// Rounds at the end of a run in which nothing goes wrong.
inline constexpr Round kCalmRounds = 4;

struct FaultOptions {
  int faults_least = 6;
  int faults_most = 16;
  Round rounds = 16;                         ///< cues lie in the rounds before the last kCalmRounds
  Duration span = std::chrono::seconds(15);  ///< faults without a cue lie within
  Duration longest_stop = std::chrono::seconds(10);
  Duration longest_isolation = std::chrono::seconds(8);
};

/// The faults of one run.
std::vector<Fault> draw_faults(std::uint64_t seed, const FaultOptions& options);

}  // namespace tw::v1
