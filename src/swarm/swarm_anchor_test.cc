// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "swarm/test_swarm.h"

/// Anchors lead before others.
namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

struct AnchoredRun {
  explicit AnchoredRun(std::set<std::uint64_t> anchors) : pool({.anchors = std::move(anchors)}) {}

  /// All live peers report this leader.
  auto leads(std::uint64_t leader, std::vector<std::uint64_t> told) {
    return pool.comes(
        [this, leader, told = std::move(told)] {
          return std::ranges::all_of(
              told, [&](std::uint64_t id) { return pool.at(id).view().leader() == PeerId{leader}; });
        },
        15s);
  }

  std::vector<std::uint64_t> members_at(std::uint64_t id) {
    std::vector<std::uint64_t> members;
    for (const wire::Member& m : pool.at(id).head()->members) members.push_back(m.peer.value);
    return members;
  }

  Pool pool;
};

TEST(Anchors, one_that_joins_leads_from_the_next_record_on) {
  AnchoredRun run({4});
  run.pool.start_all(3);
  ASSERT_TRUE(run.pool.reaches(1, 3));
  EXPECT_TRUE(run.leads(1, {1, 2, 3}));
  run.pool.start(4);
  EXPECT_TRUE(run.leads(4, {1, 2, 3, 4}));
  EXPECT_EQ(run.members_at(1), (std::vector<std::uint64_t>{4, 1, 2, 3}));
  EXPECT_TRUE(run.pool.reaches(1, run.pool.round_of(1) + 5));
  EXPECT_TRUE(run.leads(4, {1, 2, 3, 4}));
}

TEST(Anchors, lead_from_the_beginning_of_a_run_that_another_one_founds) {
  AnchoredRun run({3});
  run.pool.start_all(3);
  ASSERT_TRUE(run.pool.reaches(1, 2));
  EXPECT_TRUE(run.leads(3, {1, 2, 3}));
  EXPECT_EQ(run.members_at(2).front(), 3U);
}

TEST(Anchors, are_followed_by_the_longest_lived_anchor_and_then_by_the_longest_lived_peer) {
  AnchoredRun run({4, 5});
  run.pool.start_all(3);
  ASSERT_TRUE(run.pool.reaches(1, 2));
  run.pool.start(4);
  ASSERT_TRUE(run.leads(4, {1, 2, 3, 4}));
  run.pool.start(5);
  ASSERT_TRUE(run.pool.comes([&] { return run.members_at(1).size() == 5; }));
  EXPECT_EQ(run.members_at(1), (std::vector<std::uint64_t>{4, 5, 1, 2, 3}));
  run.pool.kill(4);
  EXPECT_TRUE(run.leads(5, {1, 2, 3, 5}));
  ASSERT_TRUE(run.pool.reaches(1, run.pool.round_of(1) + 2));
  run.pool.kill(5);
  EXPECT_TRUE(run.leads(1, {1, 2, 3}));
  EXPECT_TRUE(run.pool.reaches(2, run.pool.round_of(1) + 2));
}

TEST(Anchors, are_known_to_all_that_are_linked) {
  AnchoredRun run({2});
  run.pool.start_all(3);
  ASSERT_TRUE(run.pool.reaches(1, 1));
  for (std::uint64_t id : {1, 2, 3}) EXPECT_EQ(run.pool.at(id).view().anchors(), (std::set<PeerId>{{2}}));
}

}  // namespace
}  // namespace tw::swarm
