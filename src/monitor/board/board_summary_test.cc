// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board_summary.h"

#include <gtest/gtest.h>

#include "monitor/board/test_board.h"

namespace tw::monitor {
namespace {

TEST(BoardSummary, tells_what_the_board_knows) {
  Board board = full_board();
  board.interruptions.push_back(
      {.kind = Interruption::Kind::lost, .round = 13, .peer = PeerId{2}, .detail = "silent"});
  const Summary summary = summary_of(board);
  EXPECT_EQ(summary.rounds, 12U);
  EXPECT_EQ(summary.samples, 6144U);
  EXPECT_EQ(summary.loss, 0.25);
  EXPECT_EQ(summary.calc_s, 5);
  EXPECT_TRUE(summary.identical);
  ASSERT_EQ(summary.peers.size(), 2U);
  EXPECT_EQ(summary.peers[0].usd, 0.15 * 0.5);
  EXPECT_EQ(summary.peers[1].usd, std::nullopt);
  ASSERT_EQ(summary.lost.size(), 1U);
  EXPECT_EQ(summary.lost[0].why, "silent");
  ASSERT_EQ(summary.notices.size(), 1U);
  EXPECT_EQ(summary.notices[0].deadline_s, 120);
  EXPECT_EQ(summary.cost.usd, 0.4375);
  EXPECT_EQ(summary.cost.egress_usd, 0.125);
  EXPECT_EQ(summary.cost.requests_usd, 0.0625);
  EXPECT_EQ(summary.leavings.samples_handed_over, 128U);
}

TEST(BoardSummary, of_a_board_that_knows_nothing_makes_nothing_up) {
  const Summary summary = summary_of(Board{});
  EXPECT_FALSE(summary.identical);
  EXPECT_FALSE(summary.calc_s || summary.loss || summary.cost.usd);
}

}  // namespace
}  // namespace tw::monitor
