// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board_extract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tw::monitor {
namespace {

Board long_board(Round rounds) {
  Board board;
  for (Round round = 1; round <= rounds; ++round) {
    board.rounds.push_back({.round = round});
    board.interruptions.push_back({.round = round});
  }
  return board;
}

std::set<Round> rounds_of(const Board& board) {
  std::set<Round> rounds;
  for (const BoardRound& round : board.rounds) rounds.insert(round.round);
  return rounds;
}

TEST(BoardExtract, leaves_a_short_run_as_it_is) {
  const Board board = long_board(400);
  EXPECT_EQ(extract_of(board, 400), board);
}

TEST(BoardExtract, is_bounded_and_holds_the_newest_rounds) {
  for (const Round last : {401, 1000, 9'999, 10'000}) {
    const Board extract = extract_of(long_board(last), 400);
    EXPECT_LE(extract.rounds.size(), 400U);
    EXPECT_GT(extract.rounds.size(), 150U) << last;
    EXPECT_EQ(extract.interruptions.size(), 400U);
    const std::set<Round> rounds = rounds_of(extract);
    for (Round round = last - 49; round <= last; ++round) EXPECT_TRUE(rounds.contains(round)) << round;
    EXPECT_TRUE(std::ranges::is_sorted(extract.rounds, {}, &BoardRound::round));
  }
}

TEST(BoardExtract, keeps_the_same_old_rounds_from_one_second_to_the_next) {
  const std::set<Round> before = rounds_of(extract_of(long_board(5000), 400));
  const std::set<Round> after = rounds_of(extract_of(long_board(5010), 400));
  for (const Round round : after) EXPECT_TRUE(round > 4900 || before.contains(round)) << round;
}

}  // namespace
}  // namespace tw::monitor
