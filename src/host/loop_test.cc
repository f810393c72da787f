// SPDX-License-Identifier: Apache-2.0
#include "host/loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

namespace tw::host {
namespace {

using namespace std::chrono_literals;

TEST(Loop, calls_timers_in_the_order_of_their_times_and_none_before) {
  Loop loop;
  const Instant start = loop.now();
  std::vector<int> calls;
  loop.at(start + 20ms, [&] {
    calls.push_back(2);
    EXPECT_GE(loop.now(), start + 20ms);
  });
  loop.at(start + 10ms, [&] { calls.push_back(1); });
  loop.at(kNever, [&] { calls.push_back(3); });
  ASSERT_TRUE(loop.run_until([&] { return calls.size() == 2; }, 5s));
  EXPECT_EQ(calls, (std::vector<int>{1, 2}));
}

TEST(Loop, calls_a_timer_in_the_past_soon_but_not_from_inside_at) {
  Loop loop;
  bool called = false;
  loop.at(Instant::min() + 1s, [&] { called = true; });
  EXPECT_FALSE(called);
  EXPECT_TRUE(loop.run_until([&] { return called; }, 5s));
}

TEST(Loop, says_when_the_limit_passed_first) {
  Loop loop;
  EXPECT_FALSE(loop.run_until([] { return false; }, 5ms));
  EXPECT_TRUE(loop.run_until([] { return true; }, 0s));
}

TEST(Loop, takes_posts_of_other_threads_in_their_order) {
  Loop loop;
  std::vector<int> calls;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&calls, i] { calls.push_back(i); });
    loop.stop();
  });
  loop.run();
  other.join();
  EXPECT_TRUE(loop.run_until([&] { return calls.size() == 1000; }, 5s));
  EXPECT_TRUE(std::is_sorted(calls.begin(), calls.end()));
}

TEST(Loop, ends_run_at_stop_even_when_stop_came_first) {
  Loop loop;
  loop.stop();
  loop.run();
  bool called = false;
  loop.post([&] {
    called = true;
    loop.stop();
  });
  loop.run();
  EXPECT_TRUE(called);
}

TEST(Loop, brings_each_signal_to_the_loop) {
  Loop loop;
  std::vector<int> signals;
  loop.on_signal([&](int signal) { signals.push_back(signal); });
  std::raise(SIGTERM);
  EXPECT_TRUE(signals.empty());
  ASSERT_TRUE(loop.run_until([&] { return signals.size() == 1; }, 5s));
  std::raise(SIGINT);
  ASSERT_TRUE(loop.run_until([&] { return signals.size() == 2; }, 5s));
  EXPECT_EQ(signals, (std::vector<int>{SIGTERM, SIGINT}));
}

TEST(Loop, tells_wall_time_since_1970) {
  Loop loop;
  const double years = static_cast<double>(loop.unix_nanos()) / 1e9 / 86400 / 365.25;
  EXPECT_GT(years, 55);
  EXPECT_LT(years, 130);
}

}  // namespace
}  // namespace tw::host
