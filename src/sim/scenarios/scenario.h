// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/time.h"
#include "codec/codec.h"
#include "sim/checkers/checkers.h"
#include "sim/faults/faults.h"
#include "sim/scenarios/between.h"
#include "sim/virtual/topology.h"
#include "swarm/shares/division.h"
#include "train/learn/optimizer.h"
#include "train/run/run.h"

namespace tw::sim {

/// What the peers do. Ranges are drawn once a run.
struct WorkloadSpec {
  Between parameters{50, 300};  ///< floats of the vector
  double bulk_scale = 1;        ///< bytes on the network for a byte of a bulk message
  Between segment_length = 16;  ///< floats
  Between microbatch{1, 8};     ///< samples
  Between microbatches{8, 32};  ///< of a round (the target batch size / microbatch)
  std::vector<codec::Codec> codecs{codec::kCodecs.begin(), codec::kCodecs.end()};  ///< one is drawn
  double exact_batches = 0.5;                                                      ///< chance
  double auto_batches = 0;                                                         ///< chance
  std::vector<swarm::SiteUse> averaging{swarm::SiteUse::automatic};                ///< one is drawn
  std::vector<train::Rounding> roundings{train::Rounding::nearest,
                                         train::Rounding::stochastic};  ///< of int8; one is drawn
  std::vector<train::OptimizerKind> optimizers{train::OptimizerKind::adamw,
                                               train::OptimizerKind::sgd};  ///< one is drawn
  std::vector<train::Mode> modes{train::Mode::sync};                        ///< training.mode; one is drawn
  Between fragments = 4;         ///< training.fragments, of streaming
  double own_models = 0;         ///< chance that peers begin with other parameters than the founder
  double broken_samples = 0;     ///< share of those that are skipped
  double gone_samples = 0;       ///< share of those that are skipped once three peers were asked for them
  double norm_cap = 0;           ///< largest L2 norm per sample of a contribution; 0: none
  Between checkpoint_every = 0;  ///< rounds; 0: none
  double copies = 0;             ///< chance that checkpoints are copied to a store
  Round rounds = 16;
  Round digest_every = 1;  ///< rounds between two comparisons of the parameters
};

/// A run in a virtual world, as data. Everything that is not fixed is drawn from the seed.
struct Scenario {
  std::string name = "scenario";
  std::vector<SiteSpec> sites{SiteSpec{}};
  std::vector<LinkSpec> links{LinkSpec{}};  ///< the first that fits counts; empty names fit all
  int most_peers = 24;                      ///< that ever come
  WorkloadSpec workload;
  std::vector<FaultSpec> faults;
  FaultTimes times;
  /// Deaths are spaced so that a majority of the members of every possible next record lives on: then no
  /// round can be lost, and the run must complete. Without it one member of each record lives on, and goes on
  /// alone after the patience.
  bool keep_majority = true;
  Between patience_s = 600;  ///< RunOptions::patience
  /// From the last fault to the end of the run (L1). Without keep_majority the time in which the slowest peer
  /// does the whole run alone comes on top.
  double calm_limit_s = 120;
  bool rare_branches = true;          ///< make rarely taken branches common (sim/faults/rare_sites.h)
  std::vector<std::string> checkers;  ///< names (I1 ...); empty: all
};

struct FaultCount {
  int drawn = 0;
  int fired = 0;  ///< how often it had an effect
};

struct SimReport {
  std::uint64_t seed = 0;
  Digest history;
  std::vector<Violation> violations;
  std::vector<std::string> drawn;  ///< draws of the seed: workload, paths, faults, in words
  std::vector<std::string> lines;  ///< of the history, with keep_lines
  Round rounds = 0;                ///< of the newest record
  std::map<FaultKind, FaultCount> faults;
  std::map<std::string, int> rare;             ///< rarely taken branches: how often taken
  std::map<world::Phase, int> kills_by_phase;  ///< last phase that the victim reached in its round
  int leader_kills = 0;
  int minority_records = 0;
  std::uint64_t events = 0;  ///< calls of the scheduler
  Duration simulated{};
};

struct Watching {
  bool keep_lines = false;
  /// Called with the events of all peers, as in the logs of a real run: peer, event. Empty: not wanted.
  std::function<void(PeerId, const world::Event&)> on_event;
};

/// One run of the scenario. The same seed gives the same history, on every machine.
SimReport run_scenario(const Scenario& scenario, std::uint64_t seed, const Watching& watching = {});

/// Several lines: the violation, the draws, and the seed that reproduces it.
std::string to_string(const SimReport& report);

}  // namespace tw::sim
