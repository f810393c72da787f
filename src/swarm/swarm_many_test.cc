// SPDX-License-Identifier: Apache-2.0
#include "swarm/test_swarm.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMany = 100;

struct Crowd {
  Crowd() {
    pool.drop = [this](std::uint64_t from, std::uint64_t to, const wire::Message& message) {
      if (std::holds_alternative<wire::Heartbeat>(message)) ++heartbeats[{from, to}];
      return false;
    };
    pool.start_all(kMany);
  }

  int said_by(std::uint64_t id) const {
    int all = 0;
    for (const auto& [link, times] : heartbeats) all += link.first == id ? times : 0;
    return all;
  }

  Pool pool{{.wait_for = kMany, .lease = {3200, 4}}};
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> heartbeats;
};

TEST(ManyPeers, all_meet_though_nobody_but_the_founder_is_told_of_all) {
  Crowd crowd;
  ASSERT_TRUE(crowd.pool.reaches(kMany, 1));
  crowd.pool.run_for(2s);
  for (std::uint64_t id = 1; id <= kMany; ++id) {
    EXPECT_EQ(kMany - 1, crowd.pool.at(id).view().membership.roster().open_peers().size());
  }
}

TEST(ManyPeers, speak_often_with_the_leader_and_its_successor_alone) {
  Crowd crowd;
  ASSERT_TRUE(crowd.pool.reaches(kMany, 1));
  crowd.pool.run_for(5s);
  crowd.heartbeats.clear();
  crowd.pool.run_for(4s);
  for (std::uint64_t id = 1; id <= kMany; ++id) {
    if (id <= 2) {
      EXPECT_NEAR(16 * (kMany - 1), crowd.said_by(id), kMany);
      continue;
    }
    EXPECT_LE(crowd.said_by(id), 17 * (static_cast<int>(HeartbeatSchedule::kEachTick) + 2 + 4));
    for (const std::uint64_t front : {1, 2}) {
      EXPECT_NEAR(16, (crowd.heartbeats[{id, front}]), 1);
      EXPECT_NEAR(16, (crowd.heartbeats[{front, id}]), 1);
    }
  }
}

TEST(ManyPeers, replace_a_leader_and_its_successor_that_hang_one_after_the_other) {
  Crowd crowd;
  ASSERT_TRUE(crowd.pool.reaches(kMany, 1));
  crowd.pool.run_for(5s);
  crowd.pool.peer(1).stopped = true;
  crowd.pool.peer(2).stopped = true;
  const auto leads = [&](std::uint64_t id) {
    return [&crowd, id] { return crowd.pool.at(50).view().leader() == PeerId{id}; };
  };
  EXPECT_TRUE(crowd.pool.comes(leads(3), 3s));
}

TEST(ManyPeers, go_on_without_one_that_hangs_and_without_the_leader_that_hangs) {
  Crowd crowd;
  ASSERT_TRUE(crowd.pool.reaches(kMany, 1));
  crowd.pool.run_for(5s);
  const std::uint64_t leader = crowd.pool.at(50).view().leader()->value;
  crowd.pool.peer(50).stopped = true;
  Round round = crowd.pool.round_of(kMany);
  EXPECT_TRUE(crowd.pool.comes([&] { return crowd.pool.round_of(kMany) >= round + 2; }, 10s));
  crowd.pool.peer(leader).stopped = true;
  round = crowd.pool.round_of(kMany);
  EXPECT_TRUE(crowd.pool.comes([&] { return crowd.pool.round_of(kMany) >= round + 2; }, 15s));
}

}  // namespace
}  // namespace tw::swarm
