// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tw::monitor {
namespace {

/// Rounds of 64 samples: 1 s of computing and 0.2 s of averaging, half of it by the bandwidth.
Board board_of(std::uint64_t peers, Round rounds) {
  Board board;
  for (Round round = 1; round <= rounds; ++round) {
    BoardRound& one = board.rounds.emplace_back();
    one.round = board.round = round;
    one.committed_s = 1.2 * static_cast<double>(round);
    one.calc_s = 1;
    one.comm_s = 0.2;
    one.bound_share = 0.5;
    one.samples = 64;
    for (std::uint64_t peer = 1; peer <= peers; ++peer) one.contributors.push_back(PeerId{peer});
  }
  board.links = {{.from = "a", .to = "b", .bytes = 6 * 1'000'000 * rounds}};
  return board;
}

enum Value { kSamplesPerS, kRoundS, kCommS, kGranularity };

double answer(const Board& board, std::uint64_t peers, double bandwidth, std::uint64_t tbs, Value value) {
  const auto found = what_if(board);
  const auto at = [](const auto& steps, auto step) {
    return static_cast<std::size_t>(std::ranges::find(steps, step) - steps.begin());
  };
  return found->rounds.at(at(found->peers, peers))
      .at(at(found->bandwidth, bandwidth))
      .at(at(found->tbs, tbs))
      .at(value);
}

TEST(WhatIf, needs_two_rounds) {
  EXPECT_FALSE(what_if(board_of(4, 1)));
  EXPECT_TRUE(what_if(board_of(4, 2)));
}

TEST(WhatIf, is_the_run_as_it_is_where_nothing_changes) {
  const auto found = what_if(board_of(4, 20));
  EXPECT_EQ(found->as_it_is.peers, 4U);
  EXPECT_EQ(found->as_it_is.tbs, 64U);
  EXPECT_EQ(std::ranges::count(found->peers, 4U), 1);
  EXPECT_EQ(std::ranges::count(found->tbs, 64U), 1);
  const double comm_s = answer(board_of(4, 20), 4, 1, 64, kCommS);
  EXPECT_NEAR(comm_s, 0.1 / 0.98 + 0.02, 0.002) << "by the bandwidth, and what a round always takes";
  EXPECT_NEAR(answer(board_of(4, 20), 4, 1, 64, kRoundS), 1 + comm_s, 1e-9);
}

TEST(WhatIf, has_more_peers_compute_faster_and_average_longer) {
  const Board board = board_of(4, 20);
  const double calc_s = answer(board, 8, 1, 64, kRoundS) - answer(board, 8, 1, 64, kCommS);
  EXPECT_NEAR(calc_s, 0.5, 1e-9);
  EXPECT_GT(answer(board, 8, 1, 64, kCommS), answer(board, 4, 1, 64, kCommS));
  EXPECT_EQ(answer(board, 1, 1, 64, kCommS), 0);
}

TEST(WhatIf, of_rounds_that_overlap_counts_the_longer_part) {
  Board board = board_of(4, 20);
  board.speed.hidden = 0.9;
  EXPECT_NEAR(answer(board, 4, 1, 64, kRoundS), 1, 1e-9) << "averaging is hidden";
  const double comm_s = answer(board, 4, 0.1, 64, kCommS);
  EXPECT_GT(comm_s, 1);
  EXPECT_NEAR(answer(board, 4, 0.1, 64, kRoundS), comm_s, 1e-9) << "computing is";
}

TEST(WhatIf, has_bandwidth_shorten_averaging_alone) {
  const Board board = board_of(4, 20);
  EXPECT_LT(answer(board, 4, 5, 64, kCommS), 0.5 * answer(board, 4, 1, 64, kCommS));
  EXPECT_NEAR(answer(board, 4, 5, 64, kGranularity) * answer(board, 4, 5, 64, kCommS), 1, 1e-9);
}

TEST(WhatIf, speaks_of_the_rounds_with_as_many_peers_as_there_are_now) {
  Board board = board_of(4, 20);
  for (BoardRound& round : board.rounds) {
    if (round.round > 10) continue;
    round.contributors.resize(2);
    round.calc_s = 99;
  }
  EXPECT_NEAR(answer(board, 4, 1, 64, kRoundS), answer(board_of(4, 20), 4, 1, 64, kRoundS), 1e-9);
}

TEST(WhatIf, counts_no_bytes_of_stores) {
  Board board = board_of(4, 20);
  const double without = answer(board, 4, 10, 64, kCommS);
  board.links.push_back({.from = "store", .to = "a", .bytes = 1'000'000'000'000, .store = "store"});
  EXPECT_EQ(answer(board, 4, 10, 64, kCommS), without);
}

TEST(WhatIf, is_judged_by_the_rounds_that_came_after) {
  const auto fine = what_if(board_of(4, 20))->judged;
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->rounds, 10U);
  EXPECT_NEAR(fine->measured, 64 / 1.2, 1e-9);
  EXPECT_NEAR(fine->predicted / fine->measured, 1.2 / 1.122, 0.01);
  Board slower = board_of(4, 20);
  for (BoardRound& round : slower.rounds)
    if (round.round > 10) *round.committed_s += 10.0 * static_cast<double>(round.round - 10);
  EXPECT_LT(what_if(slower)->judged->measured, 0.2 * fine->measured);
  EXPECT_FALSE(what_if(board_of(4, 8))->judged) << "four rounds are noise";
}

}  // namespace
}  // namespace tw::monitor
