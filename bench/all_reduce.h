// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crew.h"
#include "measure.h"

/// What the all-reduce benchmarks have in common: every rank holds a vector, afterwards each has the sum (or
/// the mean) of all. One repetition runs from a barrier until all are through.
namespace tw::bench {

inline constexpr int kMostRepetitions = 64;

struct AllReduce {
  int peers = 2;
  std::uint64_t bytes = 64 << 20;  ///< of each rank's vector of float
  int repetitions = 5;             ///< after one that warms up

  std::uint64_t length() const { return bytes / sizeof(float); }

  void describe(CLI::App& app) {
    app.add_option("--peers", peers, "processes")->check(CLI::Range(1, kMostRanks))->capture_default_str();
    app.add_option("--bytes", bytes, "of the vector of floats")->capture_default_str();
    app.add_option("--repetitions", repetitions, "after one that warms up")
        ->check(CLI::Range(1, kMostRepetitions - 1))
        ->capture_default_str();
  }
};

/// Of one rank in one repetition.
struct Stamp {
  double begin_s = 0;
  double end_s = 0;
  double cpu_s = 0;
};

/// All ranks and repetitions, the one that warms up first.
struct Stamps {
  Stamp of[kMostRanks][kMostRepetitions];
};

/// Whole numbers, so that sums are exact in any order.
inline float input_at(int rank, std::uint64_t i) {
  return static_cast<float>(static_cast<int>((7 * i + 13 * static_cast<std::uint64_t>(rank)) % 251) - 125);
}

inline void fill(std::span<float> out, int rank, float factor = 1) {
  for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = factor * input_at(rank, i);
}

/// out is the sum over all ranks times factor, up to the tolerance (absolute; values lie within 125 * ranks).
inline bool is_sum(std::span<const float> out, int ranks, double factor, double tolerance) {
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += static_cast<double>(input_at(rank, i));
    if (std::abs(static_cast<double>(out[i]) - factor * sum) > tolerance) return false;
  }
  return true;
}

/// Measures what `reduce` does; right before and after it the ranks meet, and cpu_s does not include that.
template <class Meet, class Reduce>
Stamp stamp(Meet meet, Reduce reduce) {
  meet();
  Stamp stamp{wall_seconds(), 0, cpu_seconds()};
  reduce();
  stamp.cpu_s = cpu_seconds() - stamp.cpu_s;
  stamp.end_s = wall_seconds();
  meet();
  return stamp;
}

/// One JSON object: for each repetition, wall time from the first rank's begin to the last one's end, and the
/// CPU seconds of all.
inline void print(const std::string& system, const AllReduce& task, const Stamps& stamps) {
  std::vector<double> wall;
  std::vector<double> cpu;
  for (int repetition = 1; repetition <= task.repetitions; ++repetition) {
    Stamp all = stamps.of[0][repetition];
    for (int rank = 1; rank < task.peers; ++rank) {
      const Stamp& one = stamps.of[rank][repetition];
      all = {std::min(all.begin_s, one.begin_s), std::max(all.end_s, one.end_s), all.cpu_s + one.cpu_s};
    }
    wall.push_back(all.end_s - all.begin_s);
    cpu.push_back(all.cpu_s);
  }
  fmt::print(R"({{"system": "{}", "peers": {}, "bytes": {}, "wall_s": [{:.5f}], "cpu_s": [{:.5f}]}})"
             "\n",
             system, task.peers, task.bytes, fmt::join(wall, ", "), fmt::join(cpu, ", "));
}

}  // namespace tw::bench
