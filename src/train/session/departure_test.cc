// SPDX-License-Identifier: Apache-2.0
#include "train/session/departure.h"

#include <gtest/gtest.h>

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
  EXPECT_TRUE(departure.ask_to_leave());
  EXPECT_EQ(Departure::Stage::draining, departure.stage());
  EXPECT_FALSE(departure.ask_to_leave());
  departure.end("left at once", false);
  EXPECT_TRUE(departure.ended());
  EXPECT_EQ("left at once", departure.reason());
  EXPECT_FALSE(departure.complete()) << "the run goes on";
  EXPECT_FALSE(departure.failed());
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
  unasked.end("the run is complete: its checkpoint is that of the last round", false);
  EXPECT_TRUE(unasked.complete());
  Departure asked = under_way();
  EXPECT_TRUE(asked.ask_to_leave());
  EXPECT_TRUE(asked.asked_to_leave());
  asked.stand_at(true);
  asked.end("the run is complete", false);
  EXPECT_TRUE(asked.complete());
  Departure failed = under_way();
  failed.end("diverged", true);
  EXPECT_FALSE(failed.complete());
}

TEST(Departure, goes_on_draining_where_it_was_asked_to_leave_meanwhile) {
  Departure departure = under_way();
  departure.stand_at(true);
  EXPECT_TRUE(departure.ask_to_leave());
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

TEST(Departure, ends_once_and_says_so_before) {
  int calls = 0;
  Departure* seen = nullptr;
  Departure departure([&] { calls += seen->ended() ? 0 : 1; });
  seen = &departure;
  departure.begin();
  departure.end("diverged", true);
  departure.end("left at once", false);
  EXPECT_EQ(1, calls);
  EXPECT_EQ("diverged", departure.reason());
  EXPECT_TRUE(departure.failed());
}

TEST(DepartureDeathTest, an_end_is_final) {
  Departure departure = under_way();
  departure.end("diverged", true);
  EXPECT_DEATH(departure.stand_at(true), "may_follow");
  EXPECT_DEATH(departure.ask_to_leave(), "ended");
  EXPECT_DEATH(under_way().finish_last_job(), "last_jobs_");
  EXPECT_DEATH(under_way().linger(kThen, true), "at_the_end");
}

}  // namespace
}  // namespace tw::train
