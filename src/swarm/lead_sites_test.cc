// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "swarm/test_council.h"

namespace tw::swarm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The sites that the rules are given, by peer.
std::map<std::uint64_t, std::string> sites_of(const std::vector<Participant>& participants) {
  std::map<std::uint64_t, std::string> sites;
  for (const Participant& participant : participants) sites[participant.peer.value] = participant.site;
  return sites;
}

struct Calls {
  std::vector<std::map<std::uint64_t, std::string>> planted, followed, mended;
  std::vector<std::uint32_t> before;  ///< versions of the plans that were followed
};

ShareRules noting(Calls& calls) {
  ShareRules rules = equal_share_rules();
  rules.plant = [&calls](wire::Plan& plan, const auto& participants) {
    calls.planted.push_back(sites_of(participants));
    plan.sites = {{plan.participants, plan.shares}};
  };
  rules.follow = [&calls](wire::Plan& plan, const wire::Plan& before, const auto& participants) {
    calls.followed.push_back(sites_of(participants));
    calls.before.push_back(before.version);
    plan.shares = before.shares;
    plan.sites = {{plan.participants, plan.shares}};
  };
  rules.mend = [&calls](wire::Plan& plan, std::uint64_t, const auto& participants) {
    calls.mended.push_back(sites_of(participants));
    if (!plan.sites.empty()) plan.sites[0].members = plan.participants;
  };
  return rules;
}

class LeadOverSites : public ::testing::Test {
 protected:
  Calls calls;
  Council council{
      {.members = {1, 2, 3}, .sites = {{1, "a"}, {2, "b"}, {3, "a"}, {4, "b"}}, .shares = noting(calls)}};
};

TEST_F(LeadOverSites, divides_a_round_by_where_its_participants_are) {
  council.work_until_called();
  EXPECT_THAT(calls.planted, ElementsAre(std::map<std::uint64_t, std::string>{{1, "a"}, {2, "b"}, {3, "a"}}));
  EXPECT_THAT(calls.followed, IsEmpty());
  EXPECT_THAT(calls.mended, IsEmpty());
}

TEST_F(LeadOverSites, divides_what_follows_a_loss_as_it_was_before) {
  const wire::Plan first = council.work_until_called();
  council.lose(3);
  council.work_until_called(first.version);
  EXPECT_THAT(calls.followed, ElementsAre(std::map<std::uint64_t, std::string>{{1, "a"}, {2, "b"}}));
  EXPECT_THAT(calls.before, ElementsAre(first.version));
}

TEST_F(LeadOverSites, has_the_place_of_one_taken_that_is_lost_when_somebody_has_the_mean) {
  council.work_until_called();
  council.vote(2);
  council.lose(3);
  EXPECT_THAT(calls.mended, ElementsAre(std::map<std::uint64_t, std::string>{{1, "a"}, {2, "b"}}));
  EXPECT_THAT(council.last_plan.sites.at(0).members, ElementsAre(PeerId{1}, PeerId{2}));
}

TEST_F(LeadOverSites, has_one_that_only_passes_the_mean_on_replaced_too) {
  Calls none;
  ShareRules rules = noting(none);
  rules.plant = [](wire::Plan& plan, const auto&) {
    plan.shares = {{PeerId{1}, 0, 12}};
    plan.sites = {{{PeerId{1}}, plan.shares}, {{PeerId{2}, PeerId{3}}, {{PeerId{3}, 0, 12}}}};
    std::erase_if(plan.draft.contributors, [](const wire::Contribution& c) { return c.peer == PeerId{3}; });
  };
  Council other({.members = {1, 2, 3}, .shares = rules});
  other.work_until_called();
  other.vote(1);
  other.lose(3);
  EXPECT_EQ(none.mended.size(), 1U) << "it has no share of the roots, and contributes nothing";
}

TEST_F(LeadOverSites, places_a_joiner_that_comes_after_the_call) {
  council.work_until_called();
  council.candidates.insert(4);
  council.link(4);
  council.tells(4);
  EXPECT_THAT(calls.mended,
              ElementsAre(std::map<std::uint64_t, std::string>{{1, "a"}, {2, "b"}, {3, "a"}, {4, "b"}}));
  EXPECT_EQ(council.last_plan.sites.at(0).members.size(), 4U);
}

}  // namespace
}  // namespace tw::swarm
