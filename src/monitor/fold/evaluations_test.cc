// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/evaluations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace tw::monitor {
namespace {

using ::testing::ElementsAre;

constexpr PeerId kOne{1}, kTwo{2};

class EvaluationsTest : public ::testing::Test {
 protected:
  void tell(PeerId writer, double at_s, Round round, const char* name, double value) {
    const LogEntry entry{.writer = writer,
                         .event = {.round = round, .fact = event::Evaluate{.name = name, .value = value}}};
    evaluations.take({entry, at_s});
  }

  Evaluations evaluations;
};

TEST_F(EvaluationsTest, are_by_round_name_and_peer_and_the_newest_counts) {
  tell(kTwo, 9, 20, "accuracy", 0.5);
  tell(kOne, 8, 20, "accuracy", 0.4);
  tell(kOne, 3, 10, "nll", 2);
  tell(kOne, 4, 10, "accuracy", 0.1);
  tell(kOne, 5, 10, "accuracy", 0.2);
  tell(kOne, 2, 10, "accuracy", 0.3);
  EXPECT_THAT(evaluations.board(), ElementsAre(BoardEvaluation{10, 5, kOne, "accuracy", 0.2},
                                               BoardEvaluation{10, 3, kOne, "nll", 2},
                                               BoardEvaluation{20, 8, kOne, "accuracy", 0.4},
                                               BoardEvaluation{20, 9, kTwo, "accuracy", 0.5}));
}

TEST_F(EvaluationsTest, of_repeated_rounds_are_dropped) {
  tell(kOne, 3, 10, "nll", 2);
  tell(kOne, 5, 11, "nll", 1);
  evaluations.rewind(10);
  EXPECT_THAT(evaluations.board(), ElementsAre(BoardEvaluation{10, 3, kOne, "nll", 2}));
}

TEST_F(EvaluationsTest, of_others_come_with_their_status_and_nobody_speaks_for_others) {
  for (Round round = 1; round <= 40; ++round) tell(kOne, 2.0 * static_cast<double>(round), round, "nll", 1);
  tell(kTwo, 3, 7, "nll", 9);
  wire::Status status;
  status.peer.peer = kOne;
  status.evaluations = evaluations.told_by(kOne);
  ASSERT_EQ(status.evaluations.size(), Evaluations::kMostTold);
  EXPECT_EQ(status.evaluations.front().round, 25U);
  EXPECT_EQ(status.evaluations.back().round, 40U);
  status.now_s = 100;
  EXPECT_TRUE(is_sound(status));
  status.evaluations.front().value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(is_sound(status));
  status.evaluations = {{3, 1, kTwo, "nll", -0.5}};
  Evaluations others;
  others.take(status);
  EXPECT_THAT(others.board(), ElementsAre(BoardEvaluation{3, 1, kOne, "nll", -0.5}));
}

TEST_F(EvaluationsTest, of_the_oldest_rounds_go_when_there_are_too_many) {
  for (Round round = 1; round <= Board::kMostEvaluations + 5; ++round)
    tell(kOne, static_cast<double>(round), round, "nll", 1);
  EXPECT_EQ(evaluations.board().size(), Board::kMostEvaluations);
  EXPECT_EQ(evaluations.board().front().round, 6U);
}

TEST(NewestEvaluations, are_the_last_of_each_name_by_the_first_peer) {
  Board board;
  board.evaluations = {{10, 1, kOne, "accuracy", 0.1},
                       {10, 1, kOne, "nll", 2},
                       {20, 2, kOne, "accuracy", 0.4},
                       {20, 2, kTwo, "accuracy", 0.5}};
  EXPECT_THAT(newest_evaluations(board), ElementsAre(BoardEvaluation{20, 2, kOne, "accuracy", 0.4},
                                                     BoardEvaluation{10, 1, kOne, "nll", 2}));
}

}  // namespace
}  // namespace tw::monitor
