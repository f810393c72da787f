// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watched.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

using namespace std::chrono_literals;

const monitor::Board kGoesOn{.run = "c0ffee", .round = 7};

TEST(BoardToShow, is_none_before_the_first_one) {
  EXPECT_EQ(board_to_show(std::nullopt, "no event log in out", 0s).error().message, "no event log in out");
}

TEST(BoardToShow, is_the_last_one_through_a_minute_of_trouble) {
  EXPECT_EQ(board_to_show(kGoesOn, "", 90s).value(), kGoesOn) << "a look is under way";
  EXPECT_EQ(board_to_show(kGoesOn, "Connection refused", 59s).value(), kGoesOn);
  EXPECT_EQ(board_to_show(kGoesOn, "Connection refused", 61s).error().message,
            "Connection refused; the last board is 1 min 1 s old");
}

TEST(BoardToShow, of_a_run_that_is_over_stays) {
  monitor::Board over = kGoesOn;
  over.complete = true;
  EXPECT_EQ(board_to_show(over, "Connection refused", 24h).value(), over);
}

}  // namespace
}  // namespace tw::cli
