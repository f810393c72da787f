// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/answers.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

TEST(Answers, machines_pay_while_speed_grows_by_more_than_the_root_of_the_price) {
  EXPECT_EQ(paying_answer({{4, 100, 4}, {8, 190, 8}, {16, 300, 16}, {32, 333, 32}}),
            "More than 16 machines do not pay: 32 give +11 % speed at 2.0 times the cost per hour.");
  EXPECT_EQ(paying_answer({{1, 100, 1}, {2, 100, 2}}),
            "More than one machine does not pay: 2 give no more speed at 2.0 times the cost per hour.");
  EXPECT_EQ(paying_answer({{4, 100, 4}, {8, 190, 8}}), "");
  EXPECT_EQ(paying_answer({}), "");
  EXPECT_EQ(paying_answer({{1, 100, 0}, {2, 150, 1}}), "");
}

TEST(Answers, traffic_that_costs_most_names_the_batch_that_cuts_it) {
  EXPECT_EQ(traffic_answer(99, 100, 512),
            "Traffic is 99 % of the cost; a target batch of 8,192 would cut it 16 times.");
  EXPECT_EQ(traffic_answer(60, 100, 512),
            "Traffic is 60 % of the cost; a target batch of 1,024 would cut it 2 times.");
  EXPECT_EQ(traffic_answer(40, 100, 512), "");
}

TEST(Answers, granularity_is_a_share_of_linear_speed) {
  EXPECT_EQ(granularity_answer(3, 1000, false),
            "A granularity of 3 gives 75 % of linear speed; 90 % takes 9, a target batch of 3,000.");
  EXPECT_EQ(granularity_answer(9.1, 1000, false), "");
  EXPECT_EQ(granularity_answer(0.63, 512, true),
            "A granularity of 0.63 gives 63 % of linear speed; 90 % takes 0.9, a target batch of 732.");
  EXPECT_EQ(granularity_answer(0.91, 512, true), "");
}

}  // namespace
}  // namespace tw::plan
