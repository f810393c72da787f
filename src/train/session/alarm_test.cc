// SPDX-License-Identifier: Apache-2.0
#include "train/session/alarm.h"

#include <gmock/gmock.h>

#include <optional>
#include <utility>
#include <vector>

#include "train/session/test_clock.h"

namespace tw::train {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Instant at(Duration time) { return Instant{} + time; }

TEST(Alarm, rings_once_at_the_earliest_time_it_was_set_to) {
  HandClock timers;
  std::vector<Instant> rings;
  Alarm alarm(timers, [&] { rings.push_back(timers.now()); });
  for (const Duration time : {9s, 5s, 7s, 3s, 4s}) alarm.set_by(at(time));
  timers.run_until(at(20s));
  EXPECT_THAT(rings, ElementsAre(at(3s)));
  alarm.set_by(at(25s));
  timers.run_until(at(30s));
  EXPECT_THAT(rings, ElementsAre(at(3s), at(25s)));
}

// Were each call that was replaced to ring, and to set the alarm again, there would be one more of them for
// ever.
TEST(Alarm, that_is_set_again_when_it_rings_keeps_its_pace_whatever_it_was_set_to_before) {
  HandClock timers;
  std::vector<Instant> rings;
  std::optional<Alarm> alarm;
  alarm.emplace(timers, [&] {
    rings.push_back(timers.now());
    alarm->set_by(timers.now() + 2s);
  });
  for (const Duration time : {5s, 3s, 1s}) alarm->set_by(at(time));
  timers.run_until(at(6s));
  EXPECT_THAT(rings, ElementsAre(at(1s), at(3s), at(5s)));
}

TEST(Alarm, that_is_gone_rings_no_more) {
  HandClock timers;
  std::vector<Instant> rings;
  std::optional<Alarm> alarm;
  alarm.emplace(timers, [&] { rings.push_back(timers.now()); });
  alarm->set_by(at(1s));
  alarm.reset();
  timers.run_until(at(2s));
  EXPECT_THAT(rings, IsEmpty());
}

}  // namespace
}  // namespace tw::train
