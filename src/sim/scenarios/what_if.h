// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "codec/codec.h"
#include "sim/scenarios/trace.h"
#include "train/learn/optimizer.h"

/// What happens to a run on machines that come and go: the session code in a World, with machines by a list
/// of lifetimes (sim/scenarios/trace.h, sim/scenarios/machine_lifetimes.h). What each number means:
/// docs/simulation.md.
namespace tw::sim {

/// A policy that chose the machines, and what it counted on.
struct PolicyCourse {
  std::string name;
  double work_h = 0;      ///< of all machines together, anchors too
  double finished_h = 0;  ///< when all of them are trained, by its own count
  double deadline_h = 0;
  int interruptions = 0;
  int starts = 0;  ///< of spot machines
};

struct WhatIf {
  std::vector<MachineLifetime> lifetimes;  ///< of spot machines
  int anchors = 1;                         ///< machines that live from the beginning to the end
  std::optional<PolicyCourse> policy{};
  Duration length{};
  Duration notice{};    ///< time from the notice to the loss of a machine; 0: no notice
  Duration start_up{};  ///< from a machine's start to its process; the first machines are up at 0

  double parameters = 25e6;
  double samples_per_s = 100;  ///< of one machine
  std::uint64_t target_batch_size = 32768;
  std::uint64_t microbatch = 32;
  codec::Codec codec = codec::Codec::fp16;
  train::OptimizerKind optimizer = train::OptimizerKind::adamw;
  Round checkpoint_every = 0;  ///< rounds; 0: none

  double link_mbit = 1000;  ///< bandwidth of a machine, up and down; paths are as fast
  double rtt_ms = 1;
  Duration patience = std::chrono::seconds(20);  ///< RunOptions::patience

  double usd_per_h = 0;
  double anchor_usd_per_h = 0;
  double egress_usd_per_gb = 0;  ///< of every byte that a machine sends
  std::uint64_t seed = 1;
};

/// Causes of lost samples: live machines could have computed them, but they are in no round. Shares of the
/// capacity; with the goodput they add up to 1.
struct LostShares {
  double joining = 0;     ///< from a process's start until it is ready to work
  double averaging = 0;   ///< members from the call (or their last microbatch) to the commit
  double recomputed = 0;  ///< computed more than once, or by a machine lost before the call
  double leaving = 0;     ///< from a session's farewell to the loss of its machine
  double waiting = 0;     ///< the rest: unequal ends of a round, pauses, stalls, the last round's beginning
};

struct WhatIfReport {
  double goodput = 0;    ///< samples / capacity_samples
  Duration simulated{};  ///< shorter than requested if all machines were gone, which ends the run
  LostShares lost;
  std::uint64_t samples = 0;   ///< in committed rounds
  double planned_samples = 0;  ///< what WhatIf::policy counted on
  double capacity_samples =
      0;  ///< samples that machines could have computed from their process's start to their end
  double recomputed_samples = 0;
  std::uint64_t rounds = 0;
  int rounds_lost = 0;  ///< committed by a peer, but not in the history at the end
  int machines = 0;     ///< that ever came up, anchors too
  int losses = 0;       ///< members that vanished
  int leaves = 0;       ///< members that left in time
  double round_s = 0;   ///< median
  double recover_s_median = 0;
  double recover_s_worst = 0;  ///< after a loss: to the next commit, minus a usual round at the new strength
  double members_mean = 0;     ///< over time
  int members_least = 0;
  int members_most = 0;

  struct Strength {
    double at_s = 0;
    int machines = 0;  ///< that are up
    int members = 0;   ///< of the newest record
  };

  std::vector<Strength> strength;  ///< whenever a round was committed
  double machine_hours = 0;        ///< of spot machines, from their start
  double on_demand_hours = 0;      ///< of machines that a policy took on demand
  double usd = 0;
  double usd_per_million_samples = 0;
  double sent_gb = 0;                   ///< by all machines
  std::vector<std::string> violations;  ///< of the design's invariants; empty
  std::uint64_t events = 0;             ///< calls of the scheduler
};

/// told: hears after each round which share of the length is simulated; may be empty.
WhatIfReport what_if(const WhatIf& what, const std::function<void(double share)>& told = {});

/// A table for people.
std::string to_string(const WhatIf& what, const WhatIfReport& report);

}  // namespace tw::sim
