// SPDX-License-Identifier: Apache-2.0
#include "sync/ground.h"

#include <gtest/gtest.h>

namespace tw::sync {
namespace {

TEST(Ground, is_lost_where_the_others_went_on_as_far_as_this_peer_came) {
  Ground gains, keeps_pace;
  gains.step_back();
  for (Round round = 10; round < 14; ++round) gains.come_to(round, 20 - (round - 10));
  EXPECT_EQ(0U, gains.lost());
  keeps_pace.come_to(10, 15);
  EXPECT_EQ(0U, keeps_pace.lost()) << "nothing to compare with";
  keeps_pace.come_to(11, 16);
  EXPECT_EQ(1U, keeps_pace.lost());
  keeps_pace.come_to(12, 18);
  EXPECT_EQ(2U, keeps_pace.lost());
  keeps_pace.hold();
  EXPECT_EQ(0U, keeps_pace.lost());
}

TEST(Ground, is_lost_when_the_state_has_to_be_taken_again) {
  Ground ground;
  ground.start_over(8);
  EXPECT_EQ(0U, ground.lost()) << "what it had before may be of another history";
  ground.come_to(10, 30);
  ground.start_over(10);
  EXPECT_EQ(1U, ground.lost());
  ground.come_to(10, 31);
  ground.start_over(10);
  EXPECT_EQ(1U, ground.lost()) << "nobody had anything newer";
  ground.come_to(40, 60);
  EXPECT_EQ(1U, ground.lost());
  ground.stand_at_head();
  ground.step_back();
  EXPECT_EQ(2U, ground.lost()) << "it stood at the head, and the next round was decided without it";
}

}  // namespace
}  // namespace tw::sync
