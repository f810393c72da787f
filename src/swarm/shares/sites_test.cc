// SPDX-License-Identifier: Apache-2.0
#include "swarm/shares/sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/prng.h"
#include "swarm/shares/division.h"
#include "swarm/shares/shares.h"
#include "swarm/shares/traffic.h"

namespace tw::swarm {
namespace {

using ::testing::ElementsAre;
using wire::Plan;

Participant participant(std::uint64_t id, const std::string& site, double mbytes_per_s = 0,
                        bool owns = true) {
  return {PeerId{id}, owns, 1, {mbytes_per_s * 1e6, mbytes_per_s * 1e6, {}}, site};
}

/// All of them contribute.
Plan plan_of(const std::vector<Participant>& participants) {
  Plan plan;
  for (const Participant& h : participants) {
    plan.participants.push_back(h.peer);
    plan.draft.contributors.push_back({h.peer, 0, 8, RangeSet(Range{h.peer.value, 1})});
  }
  return plan;
}

Plan divided(const std::vector<Participant>& participants, std::uint64_t segments) {
  Plan plan = plan_of(participants);
  divide_into_sites(plan, segments, participants);
  return plan;
}

std::map<PeerId, std::uint64_t> counts(const std::vector<wire::Share>& shares) {
  std::map<PeerId, std::uint64_t> by_owner;
  for (const wire::Share& share : shares) by_owner[share.owner] += share.count;
  return by_owner;
}

/// Shares cover the vector and belong to participants, each of which is in one site.
bool is_sound(const Plan& plan, std::uint64_t segments) {
  std::vector<PeerId> members;
  const auto covered = [&](const std::vector<wire::Share>& shares, const std::vector<PeerId>& peers) {
    return covers(shares, segments) && std::ranges::all_of(shares, [&](const wire::Share& share) {
             return std::ranges::find(peers, share.owner) != peers.end();
           });
  };
  for (const wire::SitePlan& site : plan.sites) {
    if (site.members.empty() ? !site.shares.empty() : !covered(site.shares, site.members)) return false;
    members.insert(members.end(), site.members.begin(), site.members.end());
  }
  return covered(plan.shares, plan.participants) && std::ranges::is_permutation(members, plan.participants);
}

const std::vector<Participant> kThreeAndTwo = {participant(1, "b"), participant(2, "a"), participant(3, "b"),
                                               participant(4, "b"), participant(5, "a")};

TEST(Sites, hold_who_has_their_name_and_share_the_vector_among_them) {
  const Plan plan = divided(kThreeAndTwo, 60);
  ASSERT_EQ(plan.sites.size(), 2U);
  EXPECT_THAT(plan.sites[0].members, ElementsAre(PeerId{2}, PeerId{5}));
  EXPECT_THAT(plan.sites[1].members, ElementsAre(PeerId{1}, PeerId{3}, PeerId{4}));
  EXPECT_THAT(counts(plan.sites[0].shares),
              ElementsAre(std::pair(PeerId{2}, 30U), std::pair(PeerId{5}, 30U)));
  EXPECT_THAT(counts(plan.shares),
              ::testing::Each(::testing::Field(&std::pair<const PeerId, std::uint64_t>::second, 12U)))
      << "everybody is the root of as much";
  for (const wire::Contribution& c : plan.draft.contributors) {
    EXPECT_EQ(c.group, c.peer == PeerId{2} || c.peer == PeerId{5} ? 0U : 1U);
  }
  EXPECT_TRUE(is_sound(plan, 60));
}

TEST(Sites, share_equally_where_lines_seem_to_differ_by_little) {
  const Plan alike = divided(
      {participant(1, "a", 100), participant(2, "a", 85), participant(3, "b"), participant(4, "b")}, 60);
  EXPECT_THAT(counts(alike.sites[0].shares),
              ElementsAre(std::pair(PeerId{1}, 30U), std::pair(PeerId{2}, 30U)));
  const Plan unlike = divided(
      {participant(1, "a", 100), participant(2, "a", 50), participant(3, "b"), participant(4, "b")}, 60);
  EXPECT_THAT(counts(unlike.sites[0].shares), ElementsAre(std::pair(PeerId{1}, 60U)));
}

TEST(Sites, without_a_name_are_those_of_one_peer_each) {
  const Plan plan =
      divided({participant(1, ""), participant(2, "a"), participant(3, ""), participant(4, "a")}, 12);
  EXPECT_EQ(plan.sites.size(), 3U);
  EXPECT_TRUE(is_sound(plan, 12));
}

TEST(Sites, where_nobody_may_own_join_that_with_most_owners) {
  const Plan plan = divided({participant(1, "a", 0, false), participant(2, "b"), participant(3, "c"),
                             participant(4, "c"), participant(5, "a", 0, false)},
                            12);
  EXPECT_TRUE(plan.sites[0].members.empty());
  EXPECT_TRUE(plan.sites[0].shares.empty());
  EXPECT_EQ(plan.sites[2].members.size(), 4U);
  EXPECT_FALSE(counts(plan.sites[2].shares).contains(PeerId{1}));
  EXPECT_TRUE(is_sound(plan, 12));
}

TEST(Sites, give_more_to_who_has_the_better_line) {
  // m = 2, w = 1: T = max(1 / 50, 3 / 150) = 0.02 s; T b - 1 is 1 for the fast one and 0 for the slow one.
  const Plan plan = divided(
      {participant(1, "a", 100), participant(2, "a", 50), participant(3, "b", 100), participant(4, "b", 100)},
      60);
  EXPECT_THAT(counts(plan.sites[0].shares), ElementsAre(std::pair(PeerId{1}, 60U)));
  // T = 3 / 160: 0.875 and 0.125.
  const Plan near = divided(
      {participant(1, "a", 100), participant(2, "a", 60), participant(3, "b", 100), participant(4, "b", 100)},
      63);
  EXPECT_THAT(counts(near.sites[0].shares), ElementsAre(std::pair(PeerId{1}, 55U), std::pair(PeerId{2}, 8U)));
}

TEST(Sites, have_roots_by_what_their_lines_carry_where_that_differs_much) {
  // Three of four sites are ten times as fast: T = max(1 / 10, 6 / 310) s, and the slow one has no share.
  const Plan plan = divided(
      {participant(1, "a", 100), participant(2, "b", 100), participant(3, "c", 100), participant(4, "d", 10)},
      60);
  EXPECT_FALSE(counts(plan.shares).contains(PeerId{4}));
  const Plan even = divided(
      {participant(1, "a", 100), participant(2, "b", 100), participant(3, "c", 100), participant(4, "d", 85)},
      60);
  EXPECT_EQ(counts(even.shares).at(PeerId{4}), 15U) << "as different as lines seem by chance";
}

TEST(Sites, lend_what_is_known_of_one_line_to_the_others_there) {
  const Plan plan = divided(
      {participant(1, "a", 20), participant(2, "a"), participant(3, "b", 100), participant(4, "b", 100)}, 60);
  EXPECT_THAT(counts(plan.sites[0].shares),
              ElementsAre(std::pair(PeerId{1}, 30U), std::pair(PeerId{2}, 30U)));
}

TEST(Sites, keep_all_shares_but_those_of_who_is_gone) {
  const Plan before = divided(kThreeAndTwo, 60);
  std::vector<Participant> left = kThreeAndTwo;
  std::erase_if(left, [](const Participant& h) { return h.peer == PeerId{3}; });
  Plan after = plan_of(left);
  divide_as_before(after, before, left);
  EXPECT_TRUE(is_sound(after, 60));
  EXPECT_EQ(after.sites[0], before.sites[0]) << "the other site is as it was";
  EXPECT_THAT(counts(after.sites[1].shares),
              ElementsAre(std::pair(PeerId{1}, 30U), std::pair(PeerId{4}, 30U)));
  const auto was = counts(before.shares), is = counts(after.shares);
  for (const auto& [peer, count] : was) {
    if (peer == PeerId{2} || peer == PeerId{5}) {
      EXPECT_EQ(is.at(peer), count) << "roots have heirs in their site";
    }
  }
}

TEST(Sites, that_are_lost_leave_their_roots_to_the_others) {
  const Plan before = divided(kThreeAndTwo, 60);
  const std::vector<Participant> left = {participant(2, "a"), participant(5, "a")};
  Plan after = plan_of(left);
  divide_as_before(after, before, left);
  EXPECT_TRUE(is_sound(after, 60));
  EXPECT_TRUE(after.sites[1].members.empty());
  EXPECT_EQ(counts(after.shares).size(), 2U);
}

TEST(Sites, take_newcomers_in_where_others_have_their_name) {
  Plan plan = divided(kThreeAndTwo, 60);
  std::vector<Participant> participants = kThreeAndTwo;
  participants.push_back(participant(6, "a", 0, false));
  participants.push_back(participant(7, "nowhere", 0, false));
  for (const std::uint64_t id : {6, 7}) plan.participants.push_back(PeerId{id});
  const Plan before = plan;
  mend_sites(plan, 60, participants);
  EXPECT_TRUE(is_sound(plan, 60));
  EXPECT_THAT(plan.sites[0].members, ElementsAre(PeerId{2}, PeerId{5}, PeerId{6}));
  EXPECT_THAT(plan.sites[1].members, ElementsAre(PeerId{1}, PeerId{3}, PeerId{4}, PeerId{7}));
  EXPECT_EQ(plan.sites[0].shares, before.sites[0].shares);
  EXPECT_EQ(plan.sites[1].shares, before.sites[1].shares);
  EXPECT_EQ(plan.shares, before.shares);
}

TEST(Sites, have_somebody_who_passes_the_mean_on_when_all_their_owners_are_gone) {
  Plan plan = divided(
      {participant(1, "a"), participant(2, "a", 0, false), participant(3, "b"), participant(4, "b")}, 12);
  const std::vector<Participant> left = {participant(2, "a", 0, false), participant(3, "b"),
                                         participant(4, "b")};
  std::erase(plan.participants, PeerId{1});
  for (wire::Share& share : plan.shares) {
    share.sealed = share.owner == PeerId{1};
    if (share.sealed) share.owner = PeerId{3};
  }
  mend_sites(plan, 12, left);
  EXPECT_TRUE(is_sound(plan, 12));
  ASSERT_EQ(plan.sites[0].shares.size(), 1U);
  EXPECT_EQ(plan.sites[0].shares[0], (wire::Share{PeerId{2}, 0, 12, true}));
}

TEST(Sites, are_made_of_newcomers_when_nobody_else_is_left) {
  Plan plan = divided({participant(1, "a"), participant(2, "b")}, 12);
  plan.participants = {PeerId{3}, PeerId{4}};
  plan.shares = {{PeerId{3}, 0, 12, true}};
  mend_sites(plan, 12, {participant(3, "c", 0, false), participant(4, "d", 0, false)});
  EXPECT_TRUE(is_sound(plan, 12));
}

TEST(Sites, of_any_kind_and_after_any_losses_make_sound_plans) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Prng prng(seed);
    const std::uint64_t segments = 1 + prng.below(50);
    std::vector<Participant> participants;
    for (std::uint64_t id = 1; id <= 1 + prng.below(10); ++id) {
      const std::string site = prng.chance(0.2) ? "" : std::string(1 + prng.below(3), 's');
      participants.push_back(
          participant(id, site, prng.chance(0.5) ? 0 : 1 + prng.below(9), id == 1 || prng.chance(0.8)));
    }
    Plan plan = divided(participants, segments);
    ASSERT_TRUE(is_sound(plan, segments)) << "seed " << seed;
    while (participants.size() > 1 && prng.chance(0.8)) {
      participants.erase(participants.begin() + 1 +
                         static_cast<std::ptrdiff_t>(prng.below(participants.size() - 1)));
      Plan next = plan_of(participants);
      divide_as_before(next, plan, participants);
      plan = next;
      ASSERT_TRUE(is_sound(plan, segments)) << "seed " << seed;
    }
  }
}

TEST(PlanTraffic, of_a_tree_crosses_between_sites_twice_for_each_site_but_one) {
  const std::vector<Participant> participants = {participant(1, "a"), participant(2, "a"),
                                                 participant(3, "b"), participant(4, "b"),
                                                 participant(5, "c")};
  Plan flat = plan_of(participants);
  flat.shares = weighted_shares(60, participants);
  EXPECT_NEAR(PlanTraffic(divided(participants, 60), participants).between_sites(), 4, 1e-9);
  // Each of the five sends all to the four others and back, except what stays at its site.
  EXPECT_NEAR(PlanTraffic(flat, participants).between_sites(), 2.0 / 5 * (2 * 3 + 2 * 3 + 4), 1e-9);
}

TEST(PlanTraffic, takes_the_time_of_the_line_that_is_busy_longest) {
  const std::vector<Participant> participants = {participant(1, "a", 100), participant(2, "a", 100),
                                                 participant(3, "b", 50), participant(4, "b", 100)};
  Plan flat = plan_of(participants);
  flat.shares = equal_shares(60, flat.participants);
  EXPECT_NEAR(PlanTraffic(flat, participants).seconds_per_byte() * 1e6, 1.5 / 50, 1e-9);
  EXPECT_NEAR(PlanTraffic(flat, participants, 0.5).seconds_per_byte() * 1e6, 1.125 / 50, 1e-9)
      << "contributions half as long";
  std::vector<Participant> slow = participants;
  slow[0].bandwidth.slow = {{PeerId{4}, 1e6}};
  EXPECT_NEAR(PlanTraffic(flat, slow).seconds_per_byte() * 1e6, 0.5, 1e-9)
      << "a quarter there, a quarter back";
  EXPECT_EQ(
      PlanTraffic(flat, {participant(1, "a"), participant(2, "a"), participant(3, "b"), participant(4, "b")})
          .seconds_per_byte(),
      0);
}

Plan cut(SiteUse use, const std::vector<Participant>& participants) {
  Plan plan = plan_of(participants);
  divide(plan, 60, participants, {}, {.sites = use});
  return plan;
}

TEST(Division, is_by_sites_where_two_peers_share_one_and_others_do_not) {
  EXPECT_EQ(cut(SiteUse::automatic, kThreeAndTwo).sites.size(), 2U);
  EXPECT_TRUE(cut(SiteUse::automatic, {participant(1, "a"), participant(2, "a")}).sites.empty());
  EXPECT_TRUE(
      cut(SiteUse::automatic, {participant(1, "a"), participant(2, "b"), participant(3, "")}).sites.empty());
  EXPECT_TRUE(cut(SiteUse::automatic, {participant(1, ""), participant(2, "")}).sites.empty());
}

TEST(Division, is_as_it_was_asked_for) {
  EXPECT_TRUE(cut(SiteUse::flat, kThreeAndTwo).sites.empty());
  EXPECT_EQ(cut(SiteUse::tree, {participant(1, "a"), participant(2, "b"), participant(3, "")}).sites.size(),
            3U);
  EXPECT_TRUE(cut(SiteUse::tree, {participant(1, "a"), participant(2, "a")}).sites.empty());
}

TEST(Division, is_flat_where_a_tree_would_take_longer) {
  // At site a only peer 1 may own, with least bandwidth: it would add up and pass on for its site.
  const std::vector<Participant> participants = {participant(1, "a", 10), participant(2, "a", 100, false),
                                                 participant(3, "a", 100, false), participant(4, "b", 100),
                                                 participant(5, "c", 100)};
  const Plan flat = cut(SiteUse::flat, participants), tree = cut(SiteUse::tree, participants);
  ASSERT_GT(PlanTraffic(tree, participants).seconds_per_byte(),
            2 * PlanTraffic(flat, participants).seconds_per_byte());
  EXPECT_TRUE(cut(SiteUse::automatic, participants).sites.empty());
}

TEST(Sites, of_a_plan_that_is_malformed_stay_so) {
  Plan plan = divided(kThreeAndTwo, 60);
  plan.sites[0].shares.pop_back();
  const Plan before = plan;
  mend_sites(plan, 60, kThreeAndTwo);
  EXPECT_EQ(plan, before);
}

}  // namespace
}  // namespace tw::swarm
