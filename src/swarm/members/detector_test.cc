// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/detector.h"

#include <gtest/gtest.h>

#include <optional>

#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr PeerId kQuiet{1};
constexpr PeerId kLively{2};

/// Steps at the detector's own pace; kLively is heard all the time. Returns when a silence is noticed.
std::optional<Duration> first_silence(Detector& detector, Instant from, Duration within) {
  for (Instant now = from; now <= from + within; now += 10ms) {
    detector.heard(now, kLively);
    if (now < detector.next_step()) continue;
    const std::vector<Detector::Silence> silences = detector.step(now);
    if (silences.empty()) continue;
    EXPECT_EQ(kQuiet, silences.front().peer);
    EXPECT_EQ(1U, silences.size());
    EXPECT_EQ(now - from, silences.front().silent);
    return now - from;
  }
  return std::nullopt;
}

Detector with_both() {
  Detector detector;
  detector.open(kStart, kQuiet);
  detector.open(kStart, kLively);
  return detector;
}

TEST(Detector, names_a_silent_peer_after_two_seconds) {
  Detector detector = with_both();
  const std::optional<Duration> noticed = first_silence(detector, kStart, 10s);
  ASSERT_TRUE(noticed.has_value());
  EXPECT_GT(*noticed, 2s);
  EXPECT_LE(*noticed, 2s + 250ms);
}

TEST(Detector, names_a_silent_peer_after_one_second_while_a_round_is_overdue) {
  for (const Duration late : {0ms, 1500ms}) {
    Detector detector = with_both();
    EXPECT_TRUE(detector.step(kStart + late).empty());
    detector.hurry(true);
    detector.heard(kStart + late + 990ms, kLively);
    EXPECT_EQ(detector.step(kStart + late + 990ms).size(), late == 0ms ? 0U : 1U);
    detector.heard(kStart + late + 1250ms, kLively);
    EXPECT_EQ(detector.step(kStart + late + 1250ms).size(), 1U);
  }
  Detector calm = with_both();
  calm.hurry(true);
  calm.hurry(false);
  const std::optional<Duration> noticed = first_silence(calm, kStart, 10s);
  ASSERT_TRUE(noticed);
  EXPECT_GT(*noticed, 2s);
}

TEST(Detector, gives_a_far_peer_six_round_trips) {
  Detector detector = with_both();
  detector.round_trip(kStart + 1s, kQuiet, 600ms);
  const std::optional<Duration> noticed = first_silence(detector, kStart, 10s);
  ASSERT_TRUE(noticed.has_value());
  EXPECT_GT(*noticed, 3600ms);
  EXPECT_LE(*noticed, 3600ms + 250ms);
}

TEST(Detector, names_a_silent_peer_in_time_that_was_to_speak_seldom_before) {
  Detector detector = with_both();
  detector.expect(kQuiet, 8s);
  EXPECT_FALSE(first_silence(detector, kStart, 10s).has_value());
  detector.heard(kStart + 10s, kQuiet);
  detector.expect(kQuiet, 250ms);
  const std::optional<Duration> noticed = first_silence(detector, kStart + 10s, 10s);
  ASSERT_TRUE(noticed.has_value());
  EXPECT_LE(*noticed, 2s + 250ms);
}

TEST(Detector, gives_a_peer_that_speaks_seldom_four_of_its_intervals) {
  Detector detector = with_both();
  detector.expect(kQuiet, 8s);
  const std::optional<Duration> noticed = first_silence(detector, kStart, 1min);
  ASSERT_TRUE(noticed.has_value());
  EXPECT_GT(*noticed, 32s);
  EXPECT_LE(*noticed, 32s + 250ms);
}

TEST(Detector, is_as_strict_as_before_with_a_peer_that_speaks_often_again) {
  Detector detector = with_both();
  detector.expect(kQuiet, 8s);
  detector.expect(kQuiet, 250ms);
  EXPECT_LE(first_silence(detector, kStart, 10s), 2s + 250ms);
}

TEST(Detector, does_not_wait_for_ever_for_whoever_says_so) {
  Detector detector = with_both();
  detector.expect(kQuiet, 1h);
  EXPECT_LE(first_silence(detector, kStart, 10min), 129s);
}

TEST(Detector, blames_nobody_when_it_was_stopped_itself) {
  Detector detector = with_both();
  EXPECT_TRUE(detector.step(kStart).empty());
  EXPECT_TRUE(detector.step(kStart + 1min).empty()) << "they had no chance to be heard";
  EXPECT_TRUE(first_silence(detector, kStart + 1min, 10s).has_value()) << "but from then on they have";
}

TEST(Detector, takes_its_own_stop_for_no_round_trip) {
  Detector detector = with_both();
  detector.round_trip(kStart + 1s, kQuiet, 80ms);
  detector.step(kStart + 1s);
  detector.round_trip(kStart + 30s, kQuiet, 28s);  // what came meanwhile is read before the clock is
  EXPECT_EQ(80ms, detector.round_trip(kQuiet));
  detector.step(kStart + 30s);
  detector.round_trip(kStart + 31s, kQuiet, 2s);
  EXPECT_EQ(80ms, detector.round_trip(kQuiet)) << "it began before";
  detector.round_trip(kStart + 31s, kQuiet, 160ms);
  EXPECT_EQ(90ms, detector.round_trip(kQuiet));
}

TEST(Detector, forgets_a_closed_link_and_begins_anew_with_the_next) {
  Detector detector = with_both();
  detector.close(kQuiet);
  detector.heard(kStart + 1s, kQuiet);
  EXPECT_FALSE(first_silence(detector, kStart, 10s).has_value());
  EXPECT_EQ(0s, detector.silence(kStart + 10s, kQuiet));
  detector.open(kStart + 10s, kQuiet);
  EXPECT_EQ(1s, detector.silence(kStart + 11s, kQuiet));
  EXPECT_TRUE(first_silence(detector, kStart + 10s, 10s).has_value());
}

TEST(Detector, smooths_round_trips_and_ignores_impossible_ones) {
  Detector detector = with_both();
  detector.round_trip(kStart + 1s, kQuiet, 80ms);
  EXPECT_EQ(80ms, detector.round_trip(kQuiet));
  detector.round_trip(kStart + 1s, kQuiet, 160ms);
  EXPECT_EQ(90ms, detector.round_trip(kQuiet));
  detector.round_trip(kStart + 1s, kQuiet, -5ms);
  EXPECT_EQ(90ms, detector.round_trip(kQuiet));
  EXPECT_EQ(0ms, detector.round_trip(PeerId{9}));
}

}  // namespace
}  // namespace tw::swarm
