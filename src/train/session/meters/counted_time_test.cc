// SPDX-License-Identifier: Apache-2.0
#include "train/session/meters/counted_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace tw::train {
namespace {

using namespace std::chrono_literals;

/// A clock that a test sets.
struct SetClock final : world::Clock {
  Instant now() override { return time; }

  std::int64_t unix_nanos() override { return 7; }

  void at(Instant when, std::function<void()>) override { timers.push_back(when); }

  Instant time = Instant{} + 1h;
  std::vector<Instant> timers;
};

TEST(CountedTime, goes_on_with_the_clock_while_it_is_looked_at) {
  SetClock clock;
  CountedTime counted(clock);
  const Instant begin = counted.now();
  for (int i = 0; i < 40; ++i) {
    clock.time += 250ms;
    (void)counted.now();
  }
  EXPECT_EQ(begin + 10s, counted.now());
  EXPECT_EQ(7, counted.unix_nanos());
}

TEST(CountedTime, counts_an_hour_that_nobody_lived_through_as_one_step) {
  SetClock clock;
  CountedTime counted(clock);
  const Instant begin = counted.now();
  clock.time += 1h;
  EXPECT_EQ(begin + CountedTime::kLongestStep, counted.now());
  clock.time += 250ms;
  EXPECT_EQ(begin + CountedTime::kLongestStep + 250ms, counted.now());
}

TEST(CountedTime, sets_timers_by_the_other_clock) {
  SetClock clock;
  CountedTime counted(clock);
  clock.time += 1h;
  counted.at(counted.now() + 250ms, [] {});
  counted.at(kNever, [] {});
  EXPECT_EQ((std::vector<Instant>{clock.time + 250ms, kNever}), clock.timers);
}

TEST(StampedEvents, leave_with_the_time_of_the_machine) {
  struct Kept final : world::EventSink {
    void emit(const world::Event& event) override { last = event; }

    world::Event last;
  };

  SetClock clock;
  Kept kept;
  CountedTime counted(clock);
  StampedEvents events(clock, kept);
  clock.time += 1h;
  events.emit(world::Event{.at = counted.now(), .round = 3, .fact = event::Apply{}});
  EXPECT_EQ(clock.time, kept.last.at);
  EXPECT_EQ(3U, kept.last.round);
}

}  // namespace
}  // namespace tw::train
