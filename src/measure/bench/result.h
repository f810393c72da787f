// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/bench/times.h"
#include "measure/testbed/testbed.h"

namespace tw::measure {

/// Times of one system over all its measured rounds: medians, the fastest and the slowest.
struct SystemTimes {
  double seconds = 0;
  double fastest_s = 0;
  double slowest_s = 0;
  double cpu_s_per_gb = 0;  ///< of all peers, for each GB that crossed a link
};

/// Parts of the time of a round; medians over the measured rounds.
struct RoundParts {
  double call_s = 0;           ///< until the last peer has the plan
  double sums_s = 0;           ///< from then until all contributions are handed out and added
  double mean_s = 0;           ///< from then until the last peer holds the whole mean
  double commit_s = 0;         ///< from then until the last peer knows that it is committed
  double kernel_s_per_gb = 0;  ///< of cpu_s_per_gb, what the kernel used
  double own_s_per_gb = 0;     ///< the rest: encoding, adding, digests, encryption
  double memory_vectors = 0;   ///< most of a peer's memory, in vectors of fp32
};

/// The disturbance, and the time until all survivors had the round committed, beside that of an undisturbed
/// round.
struct DisturbedTimes {
  std::string what;  ///< "--kill 2@0.5"
  double undisturbed_s = 0;
  double disturbed_s = 0;
};

/// Rounds before, during and after --disturb; of several turns, one after the other.
struct TroubleTimes {
  std::string what;                                  ///< "--disturb link@20s"
  double before_s = 0;                               ///< median
  double steady_s = 0;                               ///< median of under_s without its first two
  std::vector<double> under_s;                       ///< without a stopped peer
  std::vector<double> after_s;                       ///< with all peers
  std::map<std::string, double> baselines_slowdown;  ///< their median under it, divided by that before
};

/// The result of `tw bench reduce`.
struct BenchResult {
  std::string topology;
  double scale = 1;  ///< by which its rates are divided
  std::uint64_t peers = 0;
  std::uint64_t bytes = 0;
  std::string codec;
  Round warm_up = 0;
  Round rounds = 0;  ///< of each turn
  Round turns = 0;
  std::uint64_t streams = 0;  ///< most data streams between two peers; 0: as many as help
  bool tls = false;           ///< of tradewind's peers; the others have none
  SystemTimes tradewind;
  RoundParts parts;
  std::vector<double> round_s;  ///< of tradewind, each measured round in turn
  std::optional<double> bound_s;
  std::optional<double> bound_cpu_s_per_gb;
  double bytes_sent_per_peer = 0;  ///< mean over the peers, in a round
  std::vector<double> bytes_sent;  ///< by peer
  bool identical = false;
  std::string difference;
  std::map<std::string, SystemTimes> baselines;
  std::optional<DisturbedTimes> disturbed;
  std::optional<TroubleTimes> trouble;
  std::optional<BoxReport> box;  ///< where there is one
  std::string commit, date, machine;
  double load_before = 0;  ///< of the machine, a minute's average
};

/// An object, indented, with a line end. docs/benchmarks.md has the keys.
std::string to_json(const BenchResult& result);

/// For people.
std::string render(const BenchResult& result);

/// The commit of the sources around this program, the date, and the machine.
void sign(BenchResult& result);

}  // namespace tw::measure
