// SPDX-License-Identifier: Apache-2.0
#include "train/session/departure.h"

#include <gtest/gtest.h>

#include <vector>

namespace tw::train {
namespace {

using namespace std::chrono_literals;

constexpr Instant kThen = Instant{} + 1h;

Departure under_way() {
  Departure departure([] {});
  departure.begin();
  return departure;
}

TEST(Departure, drains_when_it_is_asked_to_leave_and_tells_the_second_time_apart) {
  Departure departure = under_way();
  EXPECT_EQ(Departure::Stage::running, departure.stage());
  EXPECT_TRUE(departure.ask_to_leave(Ending::left));
  EXPECT_EQ(Departure::Stage::draining, departure.stage());
  EXPECT_FALSE(departure.ask_to_leave(Ending::left));
  departure.end("left at once");
  EXPECT_TRUE(departure.ended());
  EXPECT_EQ("left at once", departure.reason());
  EXPECT_EQ(Ending::left, departure.ending()) << "the run goes on";
}

TEST(Departure, lingers_after_the_last_round_until_nobody_is_missing) {
  Departure departure = under_way();
  departure.stand_at(true);
  EXPECT_EQ(Departure::Stage::last_round, departure.stage());
  EXPECT_FALSE(departure.linger(kThen, true));
  EXPECT_EQ(Departure::Stage::lingering, departure.stage());
  EXPECT_FALSE(departure.linger(kThen + Departure::kLinger, true));
  EXPECT_TRUE(departure.linger(kThen + 1s, false));
}

TEST(Departure, lingers_no_longer_than_its_time) {
  Departure departure = under_way();
  departure.stand_at(true);
  EXPECT_FALSE(departure.linger(kThen, true));
  EXPECT_TRUE(departure.linger(kThen + Departure::kLinger + 1ns, true));
}

TEST(Departure, goes_on_when_another_history_goes_before_that_of_its_last_round) {
  Departure departure = under_way();
  departure.stand_at(true);
  EXPECT_FALSE(departure.linger(kThen, true));
  departure.catch_up();
  EXPECT_EQ(Departure::Stage::running, departure.stage());
  departure.stand_at(true);
  EXPECT_FALSE(departure.linger(kThen + 1min, true)) << "it lingers anew";
}

TEST(Departure, waits_longer_for_those_that_fetch_the_state) {
  using namespace std::chrono_literals;
  Departure departure = under_way();
  departure.stand_at(true);
  EXPECT_FALSE(departure.linger(kThen, true, kThen - 1s));
  EXPECT_FALSE(departure.linger(kThen + 5s, true, kThen + 2s));
  EXPECT_FALSE(departure.linger(kThen + 30s, true, kThen + 29s));
  EXPECT_TRUE(departure.linger(kThen + 31s, true, kThen + 30s)) << "nobody waits for ever";
  EXPECT_TRUE(departure.linger(kThen + 6s, true, kThen + 2s)) << "it fetches nothing any more";
}

TEST(Departure, is_complete_when_the_run_ended_whether_it_was_asked_to_leave_or_not) {
  Departure unasked = under_way();
  unasked.end("the run is complete: its checkpoint is that of the last round");
  EXPECT_EQ(Ending::complete, unasked.ending());
  Departure asked = under_way();
  EXPECT_TRUE(asked.ask_to_leave(Ending::left));
  asked.stand_at(true);
  asked.end("the run is complete");
  EXPECT_EQ(Ending::complete, asked.ending());
  Departure failed = under_way();
  failed.fail("diverged");
  EXPECT_EQ(Ending::failed, failed.ending());
}

TEST(Departure, goes_on_draining_where_it_was_asked_to_leave_meanwhile) {
  Departure departure = under_way();
  departure.stand_at(true);
  EXPECT_TRUE(departure.ask_to_leave(Ending::left));
  EXPECT_TRUE(departure.at_the_end());
  departure.catch_up();
  EXPECT_EQ(Departure::Stage::draining, departure.stage());
}

TEST(Departure, counts_the_jobs_of_the_last_round) {
  Departure departure = under_way();
  departure.begin_last_job();
  departure.begin_last_job();
  departure.finish_last_job();
  EXPECT_TRUE(departure.has_last_jobs());
  departure.finish_last_job();
  EXPECT_FALSE(departure.has_last_jobs());
}

TEST(Departure, ends_once_and_then_says_so) {
  std::vector<Ending> told;
  Departure* seen = nullptr;
  Departure departure([&] { told.push_back(seen->ending()); });
  seen = &departure;
  departure.begin();
  departure.end("the run is complete");
  departure.end("left at once");
  EXPECT_EQ("the run is complete", departure.reason());
  departure.fail("the disk work failed");
  EXPECT_EQ(Ending::failed, departure.ending()) << "what was promised is not done";
  departure.fail("again", Ending::lost);
  EXPECT_EQ("the disk work failed", departure.reason());
  EXPECT_EQ(std::vector{Ending::complete}, told);
}

TEST(Departure, ends_for_the_strongest_reason_to_leave) {
  Departure departure = under_way();
  departure.ask_to_leave(Ending::notice);
  departure.ask_to_leave(Ending::left);
  Departure interrupted = departure;
  departure.end("left after round 3");
  EXPECT_EQ(Ending::notice, departure.ending()) << "another start may come back";
  interrupted.ask_to_leave(Ending::interrupted);
  interrupted.end("left after round 3");
  EXPECT_EQ(Ending::interrupted, interrupted.ending());
}

TEST(Departure, may_leave_before_it_has_begun) {
  Departure departure([] {});
  EXPECT_TRUE(departure.ask_to_leave(Ending::notice));
  departure.end("left before it had joined");
  EXPECT_EQ(Ending::notice, departure.ending());
}

TEST(DepartureDeathTest, an_end_is_final) {
  Departure departure = under_way();
  departure.fail("diverged");
  EXPECT_DEATH(departure.stand_at(true), "may_follow");
  EXPECT_DEATH(departure.ask_to_leave(Ending::left), "ended");
  EXPECT_DEATH(under_way().finish_last_job(), "last_jobs_");
  EXPECT_DEATH(under_way().linger(kThen, true), "at_the_end");
}

}  // namespace
}  // namespace tw::train
