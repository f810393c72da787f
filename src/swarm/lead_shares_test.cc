// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "swarm/test_council.h"

/// Owners of shares, and the shares of slow peers.
namespace tw::swarm {
namespace {

std::set<std::uint64_t> owned(const wire::Plan& plan, std::uint64_t id) {
  std::set<std::uint64_t> segments;
  for (const wire::Share& share : plan.shares) {
    for (std::uint64_t s = share.first; share.owner == PeerId{id} && s < share.first + share.count; ++s)
      segments.insert(s);
  }
  return segments;
}

TEST(Lead, has_others_reduce_what_a_slow_peer_has_not) {
  Council council;
  const wire::Plan first = council.work_until_called();
  ASSERT_EQ(owned(first, 2), (std::set<std::uint64_t>{4, 5, 6, 7}));
  council.slow(3, 2, wire::StallCause::slow_mean, Range{5, 6});
  council.after(500ms);
  EXPECT_EQ(council.last_plan.version, first.version) << "others may still complain";
  council.slow(3, 2, wire::StallCause::slow_mean, Range{6, 5});
  council.after(100ms);
  EXPECT_EQ(council.last_plan.version, first.version + 1);
  EXPECT_EQ(owned(council.last_plan, 2), (std::set<std::uint64_t>{4, 5})) << "what the reporter has stays";
  EXPECT_EQ(owned(council.last_plan, 1), (std::set<std::uint64_t>{0, 1, 2, 3, 6}));
  EXPECT_EQ(owned(council.last_plan, 3), (std::set<std::uint64_t>{7, 8, 9, 10, 11}))
      << "8 to 10 are not of 2";
  EXPECT_EQ(council.last_plan.draft, first.draft);
  EXPECT_TRUE(council.left_out().empty());
  council.after(2s);
  EXPECT_EQ(council.last_plan.version, first.version + 1) << "said once";
  for (const std::uint64_t id : {1, 2, 3}) council.vote(id);
  EXPECT_TRUE(council.lead.committed());
}

TEST(Lead, has_who_has_the_whole_mean_serve_the_segments_of_a_slow_peer) {
  Council council;
  council.work_until_called();
  council.vote(1);
  council.slow(3, 2, wire::StallCause::slow_mean, Range{6, 2});
  council.after(500ms);
  council.slow(3, 2, wire::StallCause::slow_mean, Range{6, 2});
  council.after(100ms);
  const wire::Share& last = council.last_plan.shares[council.last_plan.shares.size() - 2];
  EXPECT_EQ(last, (wire::Share{PeerId{1}, 6, 2, true}));
  council.vote(1);
  council.lose(2);
  for (const wire::Share& share : council.last_plan.shares) {
    EXPECT_EQ(share.owner, PeerId{1}) << "3 may lack a contribution of 2";
    EXPECT_TRUE(share.sealed);
  }
}

TEST(Lead, blames_a_slow_contributor_for_the_slowness_of_who_waits_for_it) {
  Council council;
  const wire::Plan first = council.work_until_called();
  council.slow(3, 2, wire::StallCause::slow_mean, Range{4, 4});
  council.slow(2, 3, wire::StallCause::slow_contribution, Range{10, 2});
  council.after(500ms);
  council.slow(3, 2, wire::StallCause::slow_mean, Range{4, 4});
  council.slow(2, 3, wire::StallCause::slow_contribution, Range{10, 2});
  council.after(100ms);
  EXPECT_EQ(owned(council.last_plan, 3), (std::set<std::uint64_t>{8, 9}));
  EXPECT_EQ(owned(council.last_plan, 2), (std::set<std::uint64_t>{4, 5, 6, 7, 11}));
}

TEST(Lead, forgets_that_a_peer_was_slow_when_nobody_repeats_it) {
  Council council;
  const wire::Plan first = council.work_until_called();
  council.slow(3, 2, wire::StallCause::slow_mean, Range{4, 4});
  council.after(3s);
  EXPECT_EQ(council.last_plan.version, first.version);
}

TEST(Lead, expects_a_plan_to_take_what_lines_demand_or_what_is_usual) {
  for (const auto& [demanded_s, expected_s] : {std::pair(0.5, 2.0), {5.0, 5.0}, {9.0, 6.0}}) {
    Council council({.expected_reduce = 2s, .division = {.bytes = {3'000'000, 3'000'000}}});
    // Three equal peers send and receive 4/3 of the vector each.
    const double rate = 4'000'000 / demanded_s;
    for (const std::uint64_t id : {1, 2, 3}) council.lines[id] = {rate, rate, {}};
    EXPECT_NEAR(council.work_until_called().expected_s, expected_s, 1e-6);
  }
}

TEST(Lead, cuts_shares_by_the_lines_that_peers_told_of) {
  Council council;
  for (const std::uint64_t id : {1, 3}) council.lines[id] = {100e6, 100e6, {}};
  council.lines[2] = {1e6, 1e6, {}};
  const wire::Plan plan = council.work_until_called();
  EXPECT_TRUE(owned(plan, 2).empty()) << "it has enough to do with its own contribution and the mean";
  EXPECT_EQ(owned(plan, 1).size(), 6U);
}

TEST(Lead, keeps_the_shares_of_the_plan_before_when_it_takes_over) {
  Council council({.leader = 2, .ballot = 1});
  council.lose(1);
  wire::Plan before;
  before.version = 1;
  before.shares = {{PeerId{1}, 0, 3}, {PeerId{3}, 3, 9}};
  council.promise(3);
  council.promise(2, before);
  const wire::Plan plan = council.work_until_called();
  EXPECT_EQ(owned(plan, 2), (std::set<std::uint64_t>{0, 1}));
  EXPECT_EQ(owned(plan, 3), (std::set<std::uint64_t>{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

}  // namespace
}  // namespace tw::swarm
