// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/clock.h"

#include <gtest/gtest.h>

#include <string>

namespace tw::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Time : testing::Test {
  void timer(Duration in, const std::string& name) {
    clock.at(clock.now() + in, [this, name] { fired += name + " "; });
  }

  Scheduler scheduler;
  Process process{scheduler};
  VirtualClock clock{process};
  std::string fired;
};

TEST_F(Time, fires_timers_at_their_time_in_order) {
  timer(seconds(2), "c");
  timer(seconds(1), "a");
  timer(seconds(1), "b");
  timer(-seconds(1), "past");
  EXPECT_EQ(fired, "") << "never from inside at()";
  scheduler.run_for(milliseconds(999));
  EXPECT_EQ(fired, "past ");
  scheduler.run_for(seconds(2));
  EXPECT_EQ(fired, "past a b c ");
}

TEST_F(Time, fires_what_is_due_at_once_and_in_order_after_a_jump) {
  timer(seconds(3), "c");
  timer(seconds(1), "a");
  timer(hours(2), "late");
  timer(seconds(3), "d");
  timer(seconds(2), "b");
  scheduler.run_for(milliseconds(500));
  const Instant before = clock.now();
  clock.jump(hours(1));
  EXPECT_EQ(clock.now() - before, hours(1));
  EXPECT_EQ(fired, "") << "not from inside jump()";
  scheduler.run_for(Duration{});
  EXPECT_EQ(fired, "a b c d ");
  scheduler.run_for(hours(1) - seconds(1));
  EXPECT_EQ(fired, "a b c d ") << "each timer fires once";
  scheduler.run_for(seconds(1));
  EXPECT_EQ(fired, "a b c d late ");
  scheduler.run_for(hours(5));
  EXPECT_EQ(fired, "a b c d late ");
}

TEST_F(Time, sets_timers_of_the_jumped_clock) {
  clock.jump(hours(1));
  timer(seconds(1), "a");
  scheduler.run_for(milliseconds(999));
  EXPECT_EQ(fired, "");
  scheduler.run_for(milliseconds(1));
  EXPECT_EQ(fired, "a ");
}

TEST_F(Time, lets_a_timer_set_another_one) {
  clock.at(clock.now() + seconds(1), [this] {
    timer(seconds(1), "b");
    timer(seconds(2), "c");
    fired += "a ";
  });
  scheduler.run_for(seconds(5));
  EXPECT_EQ(fired, "a b c ");
}

TEST_F(Time, jumps_while_the_process_is_stopped_and_fires_when_it_goes_on) {
  timer(seconds(1), "a");
  timer(seconds(9), "b");
  process.stop();
  scheduler.run_for(seconds(2));
  clock.jump(hours(1));
  scheduler.run_for(seconds(1));
  EXPECT_EQ(fired, "");
  process.resume();
  scheduler.run_for(seconds(1));
  EXPECT_EQ(fired, "a b ");
}

TEST_F(Time, moves_wall_time_both_ways_and_steady_time_with_it_never) {
  const Instant steady = clock.now();
  const std::int64_t wall = clock.unix_nanos();
  clock.jump_wall(-hours(1));
  EXPECT_EQ(clock.unix_nanos() - wall, -Duration(hours(1)).count());
  clock.jump_wall(hours(3));
  EXPECT_EQ(clock.unix_nanos() - wall, Duration(hours(2)).count());
  EXPECT_EQ(clock.now(), steady);
  clock.jump(seconds(5));
  EXPECT_EQ(clock.unix_nanos() - wall, Duration(hours(2) + seconds(5)).count()) << "a pause moves both";
}

TEST_F(Time, moves_one_process_alone) {
  Process other_process(scheduler);
  VirtualClock other(other_process);
  clock.jump(hours(1));
  EXPECT_EQ(other.now(), scheduler.now());
}

TEST_F(Time, does_not_wait_for_never) {
  clock.at(kNever, [this] { fired += "never "; });
  clock.jump(hours(1));
  scheduler.run_for(hours(100));
  EXPECT_EQ(fired, "");
}

TEST(TimeDeathTest, does_not_go_back) {
  Scheduler scheduler;
  Process process(scheduler);
  VirtualClock clock(process);
  EXPECT_DEATH(clock.jump(-seconds(1)), "forward");
}

}  // namespace
}  // namespace tw::sim
