// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "swarm/test_council.h"

namespace tw::swarm {
namespace {

using ::testing::ElementsAre;

bool owns(const std::vector<wire::Share>& shares, std::uint64_t id) {
  return std::ranges::any_of(shares, [&](const wire::Share& share) { return share.owner == PeerId{id}; });
}

class LeadOverSites : public ::testing::Test {
 protected:
  Council council{{.members = {1, 2, 3}, .sites = {{1, "a"}, {2, "b"}, {3, "a"}, {4, "b"}}}};
};

TEST_F(LeadOverSites, divides_a_round_by_where_its_participants_are) {
  const wire::Plan plan = council.work_until_called();
  ASSERT_EQ(plan.sites.size(), 2U);
  EXPECT_THAT(plan.sites[0].members, ElementsAre(PeerId{1}, PeerId{3}));
  EXPECT_THAT(plan.sites[1].members, ElementsAre(PeerId{2}));
}

TEST_F(LeadOverSites, divides_what_follows_a_loss_as_it_was_before) {
  const wire::Plan first = council.work_until_called();
  council.lose(3);
  const wire::Plan next = council.work_until_called(first.version);
  ASSERT_EQ(next.sites.size(), 2U);
  EXPECT_THAT(next.sites[0].members, ElementsAre(PeerId{1}));
  EXPECT_THAT(next.sites[1].members, ElementsAre(PeerId{2}));
  for (std::uint64_t s = 0; s < 12; ++s) {
    const auto owner_of = [&](const wire::Plan& plan) {
      return std::ranges::find_if(plan.shares, [&](auto& share) { return s < share.first + share.count; })
          ->owner;
    };
    EXPECT_TRUE(owner_of(first) == PeerId{3} || owner_of(next) == owner_of(first)) << s;
  }
}

TEST_F(LeadOverSites, has_the_place_of_one_taken_that_is_lost_when_somebody_has_the_mean) {
  const wire::Plan first = council.work_until_called();
  council.vote(2);
  council.lose(3);
  EXPECT_GT(council.last_plan.version, first.version);
  EXPECT_THAT(council.last_plan.sites.at(0).members, ElementsAre(PeerId{1}));
  EXPECT_FALSE(owns(council.last_plan.sites.at(0).shares, 3));
}

TEST(LeadOverSlowSites, has_one_that_only_passes_the_mean_on_replaced_too) {
  Council council({.members = {1, 2, 3, 4},
                   .sites = {{1, "a"}, {2, "b"}, {3, "b"}, {4, "c"}},
                   .division = {.sites = SiteUse::tree}});
  for (const std::uint64_t id : {1, 4}) council.lines[id] = {100e6, 100e6, {}};
  for (const std::uint64_t id : {2, 3}) council.lines[id] = {1e6, 1e6, {}};
  council.candidates = {3};
  const wire::Plan first = council.work_until_called();
  ASSERT_FALSE(owns(first.shares, 3) || contributes(first.draft, 3));
  ASSERT_TRUE(owns(first.sites.at(1).shares, 3));
  council.vote(1);
  council.lose(3);
  EXPECT_GT(council.last_plan.version, first.version);
  EXPECT_FALSE(owns(council.last_plan.sites.at(1).shares, 3));
}

TEST_F(LeadOverSites, places_a_joiner_that_comes_after_the_call) {
  council.work_until_called();
  council.candidates.insert(4);
  council.link(4);
  council.tells(4);
  EXPECT_THAT(council.last_plan.sites.at(1).members, ElementsAre(PeerId{2}, PeerId{4}));
}

}  // namespace
}  // namespace tw::swarm
