// SPDX-License-Identifier: Apache-2.0
#include "peer/barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::peer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr PeerId kAnn{1}, kBob{2}, kEve{3};
const std::vector<PeerId> kOthers = {kBob, kEve};

TEST(Barrier, waits_for_each_live_peer_by_name) {
  Barrier ann;
  ann.arrive(Instant(0s), kOthers);
  EXPECT_THAT(ann.awaited(kOthers), ElementsAre(kBob, kEve));
  ann.take(kBob, {.number = 1, .stands = true});
  EXPECT_THAT(ann.awaited(kOthers), ElementsAre(kEve));
  EXPECT_THAT(ann.awaited({kBob}), IsEmpty()) << "a peer that left or died is waited for no more";
  ann.take(kEve, {.number = 1, .stands = true});
  EXPECT_THAT(ann.awaited(kOthers), IsEmpty());
  ann.pass();
  EXPECT_EQ(ann.passed(), 1U);
}

TEST(Barrier, is_passed_by_those_that_are_late_to_hear) {
  Barrier ann;
  ann.arrive(Instant(0s), kOthers);
  ann.take(kBob, {.number = 1, .stands = false});  // it has gone on
  ann.take(kEve, {.number = 2, .stands = true});   // it stands at the next one already
  EXPECT_THAT(ann.awaited(kOthers), IsEmpty());
}

TEST(Barrier, counts_for_a_joiner_as_for_the_others) {
  const auto first_of_joiner = [](wire::BarrierWord bob, wire::BarrierWord eve) {
    Barrier joiner;
    joiner.take(kBob, bob);
    joiner.take(kEve, eve);
    joiner.arrive(Instant(0s), kOthers);
    return joiner.word().number;
  };
  EXPECT_EQ(first_of_joiner({7, false}, {7, false}), 8U) << "the next one of all";
  EXPECT_EQ(first_of_joiner({8, true}, {7, false}), 8U) << "where others stand";
  EXPECT_EQ(first_of_joiner({8, true}, {8, false}), 9U) << "all but Bob know that the eighth is over";
}

TEST(Barrier, tells_of_a_long_wait_more_and_more_seldom) {
  Barrier ann;
  ann.arrive(Instant(10s), kOthers);
  EXPECT_EQ(ann.news_of_wait(Instant(13s)), std::nullopt);
  EXPECT_EQ(ann.news_of_wait(Instant(14s)), 4s);
  EXPECT_EQ(ann.news_of_wait(Instant(15s)), std::nullopt);
  EXPECT_EQ(ann.news_of_wait(Instant(16s)), 6s);
  ann.pass();
  EXPECT_EQ(ann.news_of_wait(Instant(60s)), std::nullopt);
}

}  // namespace
}  // namespace tw::peer
