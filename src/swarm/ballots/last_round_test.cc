// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/last_round.h"

#include <gtest/gtest.h>

#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

TEST(LastRound, measures_from_the_first_plan_to_the_commit) {
  LastRound last;
  EXPECT_EQ(10s, last.expected()) << "before any round";
  last.called(kStart);
  last.called(kStart + 3s);
  last.decided(kStart + 4s, {{PeerId{1}, 0, 12}});
  EXPECT_EQ(4s, last.expected());
  EXPECT_EQ((std::vector<wire::Share>{{PeerId{1}, 0, 12}}), last.shares());
  last.begin_round();
  last.called(kStart + 10s);
  last.decided(kStart + 18s, {});
  EXPECT_EQ(5s, last.expected()) << "three quarters of what it was";
}

TEST(LastRound, is_overdue_long_after_the_time_of_the_plan) {
  LastRound last;
  EXPECT_FALSE(last.is_overdue(kStart + 60s, 2s)) << "there is no plan";
  last.called(kStart);
  EXPECT_FALSE(last.is_overdue(kStart + 3500ms, 2s));
  EXPECT_TRUE(last.is_overdue(kStart + 3501ms, 2s));
  last.stood_still(2s);
  EXPECT_FALSE(last.is_overdue(kStart + 5s, 2s)) << "that was this process, not the round";
}

}  // namespace
}  // namespace tw::swarm
