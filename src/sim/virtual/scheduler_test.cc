// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/scheduler.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/virtual/clock.h"
#include "sim/virtual/process.h"

namespace tw::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Scheduler, calls_in_the_order_of_time_and_then_of_asking) {
  Scheduler scheduler;
  std::string calls;
  scheduler.after(seconds(2), [&] { calls += "c"; });
  scheduler.after(seconds(1), [&] { calls += "a"; });
  scheduler.after(seconds(1), [&] { calls += "b"; });
  scheduler.at(Instant{}, [&] { calls += "0"; });
  scheduler.run_for(seconds(3));
  EXPECT_EQ(calls, "0abc");
  EXPECT_EQ(scheduler.events(), 4U);
  EXPECT_EQ(scheduler.now(), Scheduler::kStart + seconds(3));
}

TEST(Scheduler, takes_new_calls_from_inside_a_call_but_never_makes_them_at_once) {
  Scheduler scheduler;
  std::string calls;
  scheduler.after(seconds(1), [&] {
    scheduler.at(scheduler.now(), [&] { calls += "inner"; });
    calls += "outer ";
  });
  scheduler.run_for(seconds(1));
  EXPECT_EQ(calls, "outer inner");
}

TEST(Process, holds_everything_while_stopped_and_keeps_the_order) {
  Scheduler scheduler;
  Process process(scheduler);
  VirtualClock clock(process);
  std::string calls;
  process.stop();
  clock.at(scheduler.now() + milliseconds(10), [&] { calls += "a"; });
  clock.at(scheduler.now() + milliseconds(20), [&] { calls += "b"; });
  scheduler.run_for(seconds(1));
  EXPECT_EQ(calls, "");
  process.resume();
  process.enter([&] { calls += "c"; });
  EXPECT_EQ(calls, "") << "nobody runs a process from outside";
  scheduler.run_for(Duration{});
  EXPECT_EQ(calls, "abc");
  EXPECT_EQ(process.stopped_for(), seconds(1));
}

TEST(Process, forgets_everything_when_it_dies) {
  Scheduler scheduler;
  Process process(scheduler);
  int calls = 0;
  process.at(scheduler.now() + seconds(1), [&] { ++calls; });
  process.stop();
  process.enter([&] { ++calls; });
  process.kill();
  process.resume();
  scheduler.run_for(seconds(2));
  EXPECT_EQ(calls, 0);
}

TEST(Process, may_be_killed_by_what_runs_in_it_after_a_stop) {
  Scheduler scheduler;
  Process process(scheduler);
  int calls = 0;
  process.stop();
  process.enter([&] {
    ++calls;
    process.kill();
  });
  process.enter([&] { ++calls; });
  process.resume();
  scheduler.run_for(seconds(1));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tw::sim
