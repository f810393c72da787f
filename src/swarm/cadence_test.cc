// SPDX-License-Identifier: Apache-2.0
#include "swarm/cadence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tw {
namespace {

using namespace std::chrono_literals;

constexpr PeerId kSelf{7};
constexpr PeerId kLeader{100};
constexpr PeerId kHeir{101};

Cadence linked_with(std::uint64_t count) {
  Cadence cadence(kSelf);
  for (std::uint64_t id = 100; id < 100 + count; ++id) cadence.open(PeerId{id});
  return cadence;
}

bool tells(const std::vector<PeerId>& told, PeerId peer) {
  return std::find(told.begin(), told.end(), peer) != told.end();
}

TEST(Cadence, tells_everybody_each_tick_where_links_are_few) {
  Cadence cadence = linked_with(Cadence::kFewLinks);
  for (int tick = 0; tick < 20; ++tick) {
    EXPECT_EQ(Cadence::kFewLinks, cadence.tick({kLeader}).size());
    EXPECT_EQ(250ms, cadence.interval(PeerId{120}));
  }
}

TEST(Cadence, spreads_many_links_over_many_ticks_but_for_those_in_front) {
  Cadence cadence = linked_with(1023);
  EXPECT_EQ(1023U, cadence.tick({kLeader, kHeir}).size()) << "all are told how seldom it speaks";
  EXPECT_EQ(32s, cadence.interval(PeerId{500}));
  EXPECT_EQ(250ms, cadence.interval(kHeir));
  std::map<PeerId, int> told;
  for (int tick = 0; tick < 2 * 128; ++tick) {
    const std::vector<PeerId> now = cadence.tick({kLeader, kHeir});
    EXPECT_LE(now.size(), Cadence::kEachTick + 2);
    for (const PeerId peer : now) ++told[peer];
  }
  for (const auto& [peer, times] : told) EXPECT_EQ(peer == kLeader || peer == kHeir ? 256 : 2, times);
  EXPECT_EQ(1023U, told.size());
}

// Four intervals are what the other side waits for (Detector).
TEST(Cadence, keeps_nobody_waiting_for_three_intervals_while_links_and_fronts_change) {
  Cadence cadence(kSelf);
  std::map<PeerId, Duration> left;
  for (std::uint64_t tick = 0; tick < 600; ++tick) {
    for (std::uint64_t id = 0; tick < 50 && id < 10; ++id) cadence.open(PeerId{1000 + 10 * tick + id});
    const PeerId leader = tick / 100 % 2 == 0 ? PeerId{1000 + tick / 50} : kSelf;
    const std::vector<PeerId> told = cadence.tick({leader});
    for (auto& [peer, time] : left) {
      time -= Cadence::kTick;
      EXPECT_TRUE(time > 0s || tells(told, peer)) << peer.value << " in tick " << tick;
    }
    for (const PeerId peer : told) left[peer] = std::max<Duration>(3 * cadence.interval(peer), 2s);
  }
  EXPECT_EQ(500U, left.size());
}

TEST(Cadence, tells_everybody_each_tick_while_this_peer_is_in_front) {
  Cadence cadence = linked_with(200);
  for (int tick = 0; tick < 5; ++tick) EXPECT_EQ(200U, cadence.tick({kSelf, kHeir}).size());
  EXPECT_EQ(200U, cadence.tick({kHeir}).size()) << "that it will be more seldom";
  EXPECT_LT(cadence.tick({kHeir}).size(), 20U);
}

TEST(Cadence, tells_who_is_in_front_no_more_that_it_will_be_more_seldom) {
  Cadence cadence = linked_with(200);
  for (int tick = 0; tick < 40; ++tick) {
    const PeerId leader{100 + static_cast<std::uint64_t>(tick)};
    (void)cadence.tick({leader});
    EXPECT_EQ(250ms, cadence.interval(leader));
    EXPECT_TRUE(tells(cadence.tick({PeerId{299}}), leader));
    EXPECT_EQ(25 * 250ms, cadence.interval(leader));
  }
}

TEST(Cadence, forgets_a_closed_link) {
  Cadence cadence = linked_with(3);
  cadence.close(PeerId{101});
  EXPECT_EQ((std::vector<PeerId>{PeerId{100}, PeerId{102}}), cadence.tick({}));
}

}  // namespace
}  // namespace tw
