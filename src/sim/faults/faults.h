// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

/// All that can go wrong in a scenario. The names in scenario files and reports are those of fault_names().
enum class FaultKind : std::uint8_t {
  // between two peers
  reset,       ///< the link closes at both ends, what is under way is lost
  black_hole,  ///< half-open: what is sent on this link vanishes, neither end is told
  slow,        ///< bandwidth of a path drops to a tenth
  latency,     ///< latency of a path drawn anew, 0 to 400 ms
  jitter,      ///< of a path: up to ten times its latency
  one_way,     ///< asymmetric partition: what some peers send to the others is held
  partition,   ///< some peers, or a whole site, are cut off from the others
  clog,        ///< swizzled: the links of some peers stop one after the other, and resume in another order
  // processes and machines
  kill,         ///< SIGKILL
  stop,         ///< SIGSTOP, SIGCONT after `lasts`
  away,         ///< the compute thread is busy elsewhere for `lasts`
  preempt_0s,   ///< the machine is gone without notice
  preempt_10s,  ///< notice, and gone 10 s later
  preempt_30s,  ///< notice, and gone 30 s later
  preempt_120s,
  at_risk,           ///< may be taken away soon, and is safe again after `lasts`
  zone_loss,         ///< all machines of a site (or two of them) at once
  return_stale,      ///< killed; comes back after `lasts` with its old identity and the disk as it was
  relaunch,          ///< killed; started again after `lasts` with its old command line
  rolling_relaunch,  ///< the same of all peers, one after the other
  loss_of_all,       ///< all peers killed at once; the first one is started again at once, the others later
  twin,              ///< a second process with the identity of one that runs
  join,
  leave,
  // the disk of a peer
  disk_full,
  disk_error,   ///< EIO
  torn_write,   ///< power is lost in the middle of a write
  lost_fsync,   ///< what was said to be durable is not, and power is lost later
  bit_flip,     ///< one bit of a file
  rename_lost,  ///< a rename is not durable, and power is lost
  // its store of samples
  store_away,   ///< answers nothing for `lasts`
  store_lacks,  ///< lacks some samples for `lasts`
  // its memory
  memory_flip,  ///< one bit of its parameters, after its next microbatch
  // its clock
  clock_jump,  ///< an hour
  // what it contributes
  send_nan,
  send_infinite,
  send_huge,
  send_negated,
  claim_more,  ///< claims microbatches that it was never leased (samples times 1000)
  replay,      ///< repeats messages of an earlier round
  duplicate,   ///< sends everything twice
  wrong_length,
  wrong_round,
  // any message
  malformed,  ///< random bytes
  truncated,
  // more than it should, and what others take from it
  flood,
  chunk_flip,  ///< one bit of a piece of a state or of a mean
  forge_mean,  ///< offers zeros as the mean of a decided round, with the digests of these zeros
};

struct FaultName {
  FaultKind kind;
  const char* name;
};

/// All of them, in the order above.
const std::vector<FaultName>& fault_names();
const char* name_of(FaultKind kind);
std::optional<FaultKind> fault_named(std::string_view name);
bool is_of_a_disk(FaultKind kind);
bool is_of_a_store(FaultKind kind);

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
