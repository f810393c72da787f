// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "measure.h"
#include "measure/bench/board.h"

/// Common code of the collectives that `tw bench reduce --vs` starts: every rank holds a vector, and ends
/// with the sum of all. Rounds begin when they are released on the board, which also gets the stamps.
namespace tw::bench {

struct AllReduce {
  int rank = 0;
  int peers = 2;
  std::uint64_t bytes = 64 << 20;  ///< of each rank's vector of floats
  int rounds = 5;
  std::string board;

  std::uint64_t length() const { return bytes / sizeof(float); }

  void describe(CLI::App& app) {
    app.add_option("--peers", peers, "ranks")->check(CLI::Range(1, measure::kMostPlaces));
    app.add_option("--bytes", bytes, "of the vector of floats");
    app.add_option("--rounds", rounds)->check(CLI::Range(1, measure::kMostTurns - 1));
    app.add_option("--board", board, "file that all ranks share")->required();
    app.description("One rank of an all-reduce; `tw bench reduce --vs` starts it.");
  }
};

/// One rank of those that find each other by themselves.
struct Rank {
  AllReduce task;
  std::string store;    ///< folder where the ranks find each other
  std::string address;  ///< of this rank

  void describe(CLI::App& app) {
    task.describe(app);
    app.add_option("--rank", task.rank)->check(CLI::Range(0, measure::kMostPlaces - 1));
    app.add_option("--address", address)->required();
    app.add_option("--store", store)->required();
  }
};

/// Whole numbers, so that sums are exact in any order.
inline float input_at(int rank, std::uint64_t i) {
  return static_cast<float>(static_cast<int>((7 * i + 13 * static_cast<std::uint64_t>(rank)) % 251) - 125);
}

inline void fill(std::span<float> out, int rank) {
  for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = input_at(rank, i);
}

/// Checks one place of 13, in every block of a cache line or two, because all would take long.
inline bool is_sum(std::span<const float> out, int ranks) {
  for (std::uint64_t i = 0; i < out.size(); i += 13) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += input_at(rank, i);
    if (out[i] != sum) return false;
  }
  return true;
}

/// All rounds of one rank; reduce(values, round) replaces the values by the sum. Returns the exit code.
template <class Reduce>
int take_part(const AllReduce& task, std::span<float> values, Reduce reduce) {
  const auto board = measure::map_board(task.board);
  if (!board) {
    fmt::print(stderr, "{}\n", board.error().message);
    return 1;
  }
  for (int round = 1; round <= task.rounds; ++round) {
    fill(values, task.rank);
    board.value()->await(task.rank, static_cast<std::uint32_t>(round));
    measure::Stamp stamp{wall_seconds(), 0, host::cpu_seconds()};
    reduce(round);
    stamp.end_s = wall_seconds();
    stamp.cpu_s = host::cpu_seconds() - stamp.cpu_s;
    board.value()->of[task.rank][round] = stamp;
    if (is_sum(values, task.peers)) continue;
    fmt::print(stderr, "the sum of rank {} is wrong in round {}\n", task.rank, round);
    return 1;
  }
  // A rank that ends closes its connections, and others may still be at work.
  board.value()->await(task.rank, static_cast<std::uint32_t>(task.rounds) + 1);
  return 0;
}

}  // namespace tw::bench
