// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_line.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

using namespace std::chrono_literals;

TEST(ProgressLine, tells_the_time_left_by_the_time_it_took) {
  EXPECT_EQ(with_time_left("25 of 100", 0.25, 30s), "25 of 100, about 1 min 30 s to go");
  EXPECT_EQ(with_time_left("0 of 100", 0, 30s), "0 of 100");
  EXPECT_EQ(with_time_left("100 of 100", 1, 30s), "100 of 100");
}

TEST(ProgressLine, changes_a_few_times_a_second_on_a_terminal) {
  EXPECT_FALSE(is_due(true, 900ms, 0s));
  EXPECT_TRUE(is_due(true, 1s, 0s));
  EXPECT_FALSE(is_due(true, 1100ms, 1s));
  EXPECT_TRUE(is_due(true, 1200ms, 1s));
}

TEST(ProgressLine, is_a_line_each_30_seconds_in_a_log) {
  EXPECT_FALSE(is_due(false, 29s, 0s));
  EXPECT_TRUE(is_due(false, 30s, 0s));
  EXPECT_FALSE(is_due(false, 59s, 30s));
  EXPECT_TRUE(is_due(false, 61s, 30s));
}

}  // namespace
}  // namespace tw::cli
