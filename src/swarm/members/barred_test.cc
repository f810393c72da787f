// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/barred.h"

#include <gtest/gtest.h>

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr Instant kBarredStart = Instant{} + 1h;

wire::Member incarnation(std::uint64_t id, std::uint64_t number) { return {PeerId{id}, "", number}; }

TEST(Barred, keeps_out_a_superseded_process_for_good_and_one_that_was_turned_away_for_its_time) {
  Barred barred;
  barred.supersede(incarnation(2, 7));
  barred.turn_away(kBarredStart, kBarredStart + 6s, incarnation(3, 1));
  EXPECT_TRUE(barred.bars(kBarredStart + 24h, incarnation(2, 7)));
  EXPECT_FALSE(barred.bars(kBarredStart, incarnation(2, 8)));
  EXPECT_TRUE(barred.bars(kBarredStart + 5s, incarnation(3, 1)));
  EXPECT_FALSE(barred.bars(kBarredStart + 5s, incarnation(3, 2)));
  EXPECT_FALSE(barred.bars(kBarredStart + 6s, incarnation(3, 1)));
}

TEST(Barred, remembers_the_latest_of_100000_ids_and_no_more_than_its_bound) {
  Barred barred;
  for (std::uint64_t id = 1; id <= 100'000; ++id) {
    const Instant now = kBarredStart + id * 10ms;
    barred.supersede(incarnation(id, id));
    barred.turn_away(now, now + 6s, incarnation(id, id + 1));
    ASSERT_LE(barred.size(), Barred::kMostSuperseded + 601) << id;
  }
  EXPECT_TRUE(barred.bars(kBarredStart, incarnation(100'000, 100'000)));
}

}  // namespace
}  // namespace tw::swarm
