// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/heartbeat_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr PeerId kSelf{7};
constexpr PeerId kLeader{100};
constexpr PeerId kHeir{101};

HeartbeatSchedule linked_with(std::uint64_t count) {
  HeartbeatSchedule heartbeat_schedule(kSelf);
  for (std::uint64_t id = 100; id < 100 + count; ++id) heartbeat_schedule.open(PeerId{id});
  return heartbeat_schedule;
}

bool tells(const std::vector<PeerId>& told, PeerId peer) {
  return std::find(told.begin(), told.end(), peer) != told.end();
}

TEST(HeartbeatSchedule, tells_everybody_each_tick_where_links_are_few) {
  HeartbeatSchedule heartbeat_schedule = linked_with(HeartbeatSchedule::kFewLinks);
  for (int tick = 0; tick < 20; ++tick) {
    EXPECT_EQ(HeartbeatSchedule::kFewLinks, heartbeat_schedule.tick({kLeader}).size());
    EXPECT_EQ(250ms, heartbeat_schedule.interval(PeerId{120}));
  }
}

TEST(HeartbeatSchedule, spreads_many_links_over_many_ticks_but_for_those_in_front) {
  HeartbeatSchedule heartbeat_schedule = linked_with(1023);
  EXPECT_EQ(1023U, heartbeat_schedule.tick({kLeader, kHeir}).size()) << "all are told how seldom it speaks";
  EXPECT_EQ(32s, heartbeat_schedule.interval(PeerId{500}));
  EXPECT_EQ(250ms, heartbeat_schedule.interval(kHeir));
  std::map<PeerId, int> told;
  for (int tick = 0; tick < 2 * 128; ++tick) {
    const std::vector<PeerId> now = heartbeat_schedule.tick({kLeader, kHeir});
    EXPECT_LE(now.size(), HeartbeatSchedule::kEachTick + 2);
    for (const PeerId peer : now) ++told[peer];
  }
  for (const auto& [peer, times] : told) EXPECT_EQ(peer == kLeader || peer == kHeir ? 256 : 2, times);
  EXPECT_EQ(1023U, told.size());
}

// The other side waits for four intervals (Detector).
TEST(HeartbeatSchedule, keeps_nobody_waiting_for_three_intervals_while_links_and_fronts_change) {
  HeartbeatSchedule heartbeat_schedule(kSelf);
  std::map<PeerId, Duration> left;
  for (std::uint64_t tick = 0; tick < 600; ++tick) {
    for (std::uint64_t id = 0; tick < 50 && id < 10; ++id)
      heartbeat_schedule.open(PeerId{1000 + 10 * tick + id});
    const PeerId leader = tick / 100 % 2 == 0 ? PeerId{1000 + tick / 50} : kSelf;
    const std::vector<PeerId> told = heartbeat_schedule.tick({leader});
    for (auto& [peer, time] : left) {
      time -= HeartbeatSchedule::kTick;
      EXPECT_TRUE(time > 0s || tells(told, peer)) << peer.value << " in tick " << tick;
    }
    for (const PeerId peer : told) left[peer] = std::max<Duration>(3 * heartbeat_schedule.interval(peer), 2s);
  }
  EXPECT_EQ(500U, left.size());
}

TEST(HeartbeatSchedule, tells_everybody_each_tick_while_this_peer_is_in_front) {
  HeartbeatSchedule heartbeat_schedule = linked_with(200);
  for (int tick = 0; tick < 5; ++tick) EXPECT_EQ(200U, heartbeat_schedule.tick({kSelf, kHeir}).size());
  EXPECT_EQ(200U, heartbeat_schedule.tick({kHeir}).size()) << "that it will be more seldom";
  EXPECT_LT(heartbeat_schedule.tick({kHeir}).size(), 20U);
}

TEST(HeartbeatSchedule, tells_who_is_in_front_no_more_that_it_will_be_more_seldom) {
  HeartbeatSchedule heartbeat_schedule = linked_with(200);
  for (int tick = 0; tick < 40; ++tick) {
    const PeerId leader{100 + static_cast<std::uint64_t>(tick)};
    (void)heartbeat_schedule.tick({leader});
    EXPECT_EQ(250ms, heartbeat_schedule.interval(leader));
    EXPECT_TRUE(tells(heartbeat_schedule.tick({PeerId{299}}), leader));
    EXPECT_EQ(25 * 250ms, heartbeat_schedule.interval(leader));
  }
}

TEST(HeartbeatSchedule, forgets_a_closed_link) {
  HeartbeatSchedule heartbeat_schedule = linked_with(3);
  heartbeat_schedule.close(PeerId{101});
  EXPECT_EQ((std::vector<PeerId>{PeerId{100}, PeerId{102}}), heartbeat_schedule.tick({}));
}

}  // namespace
}  // namespace tw::swarm
