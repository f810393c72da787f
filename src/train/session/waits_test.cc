// SPDX-License-Identifier: Apache-2.0
#include "train/session/waits.h"

#include <gtest/gtest.h>

namespace tw::train {
namespace {

using swarm::Wait;
using namespace std::chrono_literals;

const Wait kForBob{Wait::Kind::votes, {PeerId{2}}, 7};

Instant at(Duration time) { return Instant{} + time; }

class Telling : public testing::Test {
 protected:
  /// Seconds at which the wait was told, looked at four times a second.
  std::vector<double> told(const Wait& wait, Duration from, Duration to) {
    std::vector<double> seconds;
    for (Duration at = from; at < to; at += 250ms) {
      if (waits.watch(Instant(at), 7, wait)) seconds.push_back(to_seconds(at));
    }
    return seconds;
  }

  Waits waits;
};

TEST_F(Telling, begins_within_five_seconds_and_becomes_rarer) {
  EXPECT_EQ(told(kForBob, 0s, 60s), (std::vector<double>{4, 8, 12, 18, 27, 40.5}));
}

TEST_F(Telling, begins_anew_when_somebody_else_is_waited_for) {
  EXPECT_TRUE(told(kForBob, 0s, 4s).empty());
  EXPECT_EQ(told({Wait::Kind::votes, {PeerId{3}}, 7}, 4s, 9s), (std::vector<double>{8}));
}

TEST_F(Telling, of_a_link_to_the_leader_does_not_begin_anew_with_each_round_of_the_others) {
  const Wait link{Wait::Kind::link, {PeerId{1}}};
  for (Round round = 1; round < 40; ++round) EXPECT_FALSE(waits.watch(at(100ms * round), round, link));
  EXPECT_TRUE(waits.watch(at(4200ms), 42, link));
}

TEST_F(Telling, names_the_peer_and_the_numbers_of_an_event) {
  Wait segments{Wait::Kind::segments, {PeerId{2}}, 7, 0, 3, 8};
  waits.watch(Instant(0s), 7, segments);
  const auto event = waits.watch(Instant(5s), 7, segments);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->peer, PeerId{2});
  EXPECT_EQ(event->why, "waiting for peer 2: segments to be averaged: 3 of 8 are here");
  const event::Wait& wait = *event->as<event::Wait>();
  EXPECT_EQ(wait.seconds, 5.0);
  EXPECT_EQ(wait.done, 3U);
  EXPECT_EQ(wait.total, 8U);
}

TEST_F(Telling, leaves_out_microbatches_that_take_their_usual_time) {
  const Wait microbatch{.kind = Wait::Kind::computing, .round = 7};
  for (Duration at = 0s; at < 60s; at += 6s) {
    waits.compute().submitted(Instant(at), microbatch);
    EXPECT_EQ(told(waits.compute().current(), at, at + 6s).size(), at == 0s ? 1U : 0U);
    waits.compute().finished(Instant(at + 6s), 6s);
  }
  waits.compute().submitted(Instant(60s), microbatch);
  EXPECT_EQ(told(waits.compute().current(), 60s, 80s), (std::vector<double>{78}));
}

TEST(OwnWork, is_the_job_that_runs) {
  OwnWork work;
  EXPECT_EQ(work.current().kind, Wait::Kind::nothing);
  work.submitted(Instant(1s), {.kind = Wait::Kind::saving});
  work.submitted(Instant(2s), {.kind = Wait::Kind::computing});
  EXPECT_EQ(work.since(), Instant(1s));
  work.finished(Instant(9s), 8s);
  EXPECT_EQ(work.current().kind, Wait::Kind::computing);
  EXPECT_EQ(work.since(), Instant(9s));
  EXPECT_EQ(work.usual(Wait::Kind::saving), 8s);
}

TEST(OwnWork, takes_the_first_job_of_a_kind_for_a_warm_up) {
  OwnWork work;
  for (const Duration took : {60s, 4s, 8s}) {
    work.submitted({}, {.kind = Wait::Kind::computing});
    work.finished({}, took);
  }
  EXPECT_EQ(work.usual(Wait::Kind::computing), 5s);
}

TEST(UnansweredDials, count_until_somebody_answers_there) {
  Waits waits;
  waits.on_refused(at(0s), "a:1", "Connection refused");
  waits.on_refused(at(5s), "a:1", "timed out");
  EXPECT_EQ(waits.unanswered(at(5s), "a:1"), (Wait::Unanswered{"a:1", "timed out", 2}));
  waits.on_answer("a:1");
  EXPECT_FALSE(waits.unanswered(at(5s), "a:1"));
}

TEST(UnansweredDials, are_forgotten_when_nobody_dials_there_any_more) {
  Waits waits;
  waits.on_refused(at(0s), "a:1", "timed out");
  EXPECT_TRUE(waits.unanswered(at(59s), "a:1"));
  EXPECT_FALSE(waits.unanswered(at(60s), "a:1"));
  waits.on_refused(at(60s), "a:1", "timed out");
  EXPECT_EQ(waits.unanswered(at(60s), "a:1")->attempts, 1U) << "what comes later is counted anew";
}

TEST(UnansweredDials, are_kept_of_so_many_addresses_and_of_those_dialled_last) {
  Waits waits;
  for (std::size_t i = 0; i <= Waits::kMostAddresses; ++i)
    waits.on_refused(at(10ms * i), std::to_string(i), "");
  const Instant now = at(1s);
  EXPECT_FALSE(waits.unanswered(now, "0"));
  for (std::size_t i = 1; i <= Waits::kMostAddresses; ++i)
    EXPECT_TRUE(waits.unanswered(now, std::to_string(i))) << i;
}

}  // namespace
}  // namespace tw::train
