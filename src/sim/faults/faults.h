// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/prng.h"
#include "base/time.h"
#include "sim/scenarios/between.h"
#include "sim/virtual/network.h"
#include "world/events.h"

namespace tw::sim {

/// All that can go wrong in a scenario; fault_rows() says what each is.
enum class FaultKind : std::uint8_t {
  // between two peers
  reset,
  black_hole,
  slow,
  latency,
  jitter,
  // between some peers and the others
  one_way,
  partition,
  clog,
  // processes and machines
  kill,
  stop,
  away,
  preempt_0s,
  preempt_10s,
  preempt_30s,
  preempt_120s,
  at_risk,
  zone_loss,
  return_stale,
  relaunch,
  rolling_relaunch,
  loss_of_all,
  twin,
  join,
  leave,
  end_run,
  // the disk of a peer
  disk_full,
  disk_error,
  torn_write,
  lost_fsync,
  bit_flip,
  rename_lost,
  // its stores
  store_away,
  store_lacks,
  // memory and clock
  memory_flip,
  clock_jump,
  // what it sends
  send_nan,
  send_infinite,
  send_huge,
  send_negated,
  claim_more,
  replay,
  duplicate,
  wrong_length,
  wrong_round,
  malformed,
  truncated,
  flood,
  chunk_flip,
  forge_mean,
};

/// What a fault works on.
enum class FaultPlace : std::uint8_t { path, network, process, disk, store, messages };

inline constexpr std::uint8_t kLasts = 0, kOver = 1, kEnds = 2, kLoses = 4;  ///< bits of `effects`

struct FaultRow {
  FaultKind kind{};
  std::string_view name;  ///< in scenario files and reports
  FaultPlace place{};
  std::uint8_t effects = 0;
  std::string_view meaning;
  Duration notice{};  ///< of a preemption

  /// The rest is up to the peers; other faults last.
  constexpr bool over_at_once() const { return (effects & kOver) != 0; }

  /// The victim's process or machine is gone at once, without notice.
  constexpr bool ends_process() const { return (effects & kEnds) != 0; }

  /// Files are lost that were said to be durable.
  constexpr bool loses_files() const { return (effects & kLoses) != 0; }
};

/// All of them, in the order above.
std::span<const FaultRow> fault_rows();
const FaultRow& row_of(FaultKind kind);
std::string_view name_of(FaultKind kind);
/// nullptr: none has this name.
const FaultRow* fault_named(std::string_view name);

/// The victims; if no peer fits, any peer is chosen.
enum class Aim : std::uint8_t {
  any,
  leader,
  author,  ///< the writer of the event that the fault waited for
};

/// The fault waits for the first event of this phase in this round, by any peer.
struct Cue {
  world::Phase phase{};
  Round round = 0;
};

/// One fault, as plain values: `choice` decides the exact victim and effect when it strikes.
struct Fault {
  FaultKind kind{};
  std::optional<Cue> cue{};
  Duration after{};  ///< the cue, or the start
  Aim aim = Aim::any;
  Duration lasts{};  ///< of faults that end by themselves
  Death death = Death::clean;
  std::uint64_t choice = 0;
};

/// "kill of the leader, clean, 3 ms after the first commit of round 4"
std::string to_string(const Fault& fault);

/// A row of a scenario's menu.
struct FaultSpec {
  FaultKind kind{};
  double chance = 0;        ///< that a run has it at all
  int least = 1, most = 1;  ///< how often then
  Between lasts_s{0.1, 8};  ///< of lasting faults
};

/// When the faults of a run strike.
struct FaultTimes {
  Round rounds = 16;        ///< cues lie in the rounds before the last calm_rounds
  Round calm_rounds = 4;    ///< without faults at the end of a run; 0: faults go on until span_s
  double cue_chance = 0.6;  ///< that a fault waits for a phase of a round; else it strikes at a random time
  Between span_s = 15;      ///< of the safety phase, drawn once; faults without a cue lie within
};

/// The faults of one run.
std::vector<Fault> draw_faults(Prng& random, const std::vector<FaultSpec>& menu, const FaultTimes& times);

}  // namespace tw::sim
