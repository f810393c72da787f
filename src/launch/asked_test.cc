// SPDX-License-Identifier: Apache-2.0
#include "launch/asked.h"

#include <gtest/gtest.h>

namespace tw::launch {
namespace {

TEST(Asked, a_zone_that_gives_no_spot_machine_for_longer_than_a_start_has_none) {
  Deployment deployment;
  const market::Site east = market::parse_site("aws:us-east-1").value();
  deployment.peers = {{.number = 1, .machine = {.site = east, .purchase = market::Purchase::spot}},
                      {.number = 2, .machine = {.site = east, .purchase = market::Purchase::on_demand}}};
  const std::vector<PeerReport> waiting{{.number = 1, .state = PeerState::waiting},
                                        {.number = 2, .state = PeerState::waiting}};
  Asked asked;
  const Instant begin{};
  asked.look(deployment, waiting, begin);
  EXPECT_TRUE(asked.unanswered(begin + std::chrono::minutes(9)).empty());
  asked.look(deployment, waiting, begin + std::chrono::minutes(30));
  const auto zones = asked.unanswered(begin + std::chrono::minutes(30));
  ASSERT_EQ(zones.size(), 1U);
  EXPECT_EQ(zones.front().site, east);
  EXPECT_FALSE(zones.front().sight.up);
  EXPECT_NEAR(zones.front().sight.age_h, 0.5, 1e-9);
  asked.look(deployment, {{.number = 1, .state = PeerState::running}}, begin + std::chrono::minutes(31));
  EXPECT_TRUE(asked.unanswered(begin + std::chrono::minutes(60)).empty());
}

TEST(Asked, a_zone_that_the_plan_has_left_is_remembered_until_it_gives_a_machine) {
  const market::Site east = market::parse_site("aws:us-east-1").value();
  const PeerJob first{.number = 1, .machine = {.site = east, .purchase = market::Purchase::spot}};
  const PeerJob second{.number = 2, .machine = {.site = east, .purchase = market::Purchase::spot}};
  Deployment deployment;
  deployment.peers = {first};
  Asked asked;
  const Instant begin{};
  asked.look(deployment, {{.number = 1, .state = PeerState::waiting}}, begin);
  deployment.peers = {};
  asked.look(deployment, {}, begin + std::chrono::minutes(30));
  ASSERT_EQ(asked.unanswered(begin + std::chrono::minutes(60)).size(), 1U);
  EXPECT_NEAR(*asked.unanswered(begin + std::chrono::minutes(60)).front().refused_h, 1, 1e-9);
  deployment.peers = {second};
  asked.look(deployment, {{.number = 2, .state = PeerState::waiting}}, begin + std::chrono::minutes(61));
  asked.look(deployment, {{.number = 2, .state = PeerState::running}}, begin + std::chrono::minutes(64));
  EXPECT_TRUE(asked.unanswered(begin + std::chrono::minutes(65)).empty());
}

}  // namespace
}  // namespace tw::launch
