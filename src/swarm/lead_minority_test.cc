// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "swarm/test_council.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Peer 2 takes over round 7 from peer 1, which is gone. Another process runs under the id of 3.
struct Replaced {
  Replaced() {
    council.lose(1);
    council.lose(3);
    council.live[PeerId{3}] = kAnother;
    council.candidates.insert(3);
    council.lead.set_live(council.now, council.live);
  }

  /// Peer 2 voted for a plan in which it did the whole round alone.
  wire::Accepted accepted() const {
    wire::Plan plan;
    plan.version = 1;
    plan.draft.run = council.head.run;
    plan.draft.round = 7;
    plan.draft.parent = digest_of(council.head);
    plan.draft.members = council.head.members;
    plan.draft.contributors = {{PeerId{2}, 0, 64, RangeSet(Range{0, 16})}};
    plan.draft.first_sample = 384;
    plan.draft.samples = 64;
    plan.draft.parameters = kParameters;
    plan.shares = {{PeerId{1}, 0, 6}, {PeerId{2}, 6, 6}};
    plan.participants = {PeerId{1}, PeerId{2}};
    return {plan, kMean};
  }

  static constexpr std::uint64_t kAnother = 9;  ///< incarnation

  Council council{{.leader = 2, .ballot = 1}};
};

TEST(LeadMinority, names_those_that_are_here_in_the_record_of_a_plan_that_it_must_finish) {
  Replaced story;
  Council& council = story.council;
  const wire::Accepted accepted = story.accepted();
  council.promise(2, accepted.plan, accepted);
  council.tells(3);
  council.after(11s);
  council.vote(2);
  const wire::Plan plan = council.last_plan;
  EXPECT_TRUE(plan.draft.minority);
  EXPECT_EQ(plan.draft.contributors, accepted.plan.draft.contributors);
  const wire::Member three{PeerId{3}, member(3).address, Replaced::kAnother};
  EXPECT_THAT(plan.draft.members, ElementsAre(member(2), three)) << "or 3 is turned away by this very record";
  EXPECT_THAT(plan.participants, ElementsAre(PeerId{2}, PeerId{3})) << "whoever is a member gets the mean";
  council.vote(2);
  EXPECT_FALSE(council.lead.committed()) << "3 is waited for";
  council.vote(3);
  EXPECT_TRUE(council.lead.committed());
}

TEST(LeadMinority, does_not_wait_in_the_next_round_for_those_it_lost_in_this_one) {
  Council council;
  council.work_until_called();
  council.vote(1);
  for (const std::uint64_t id : {2, 3}) {
    council.lose(id);
    council.vote(1);
  }
  council.after(11s);
  council.vote(1);
  ASSERT_TRUE(council.lead.committed());
  EXPECT_THAT(council.lead.committed()->members, ElementsAre(member(1)));
}

TEST(LeadMinority, counts_no_promise_of_a_process_that_took_the_id_of_a_member) {
  Replaced story;
  Council& council = story.council;
  council.lead.on_promise(PeerId{3}, {5, {}, {}, {}});
  EXPECT_FALSE(council.lead.resigned()) << "nor is it outbid by one";
  const wire::Accepted accepted = story.accepted();
  council.promise(3, accepted.plan, accepted);
  council.promise(2);
  council.after(11s);
  council.everybody_tells();
  EXPECT_TRUE(council.plans.empty()) << "what it voted for is finished by those that it is a member of";
  EXPECT_FALSE(council.leased.empty());
}

// The leader is gone; 2 voted for its plan, then took the state of the same head anew.
TEST(LeadMinority, gives_up_a_plan_whose_mean_is_lost_when_its_patience_ends) {
  Council council({.leader = 2, .ballot = 1});
  council.lose(1);
  const wire::Accepted accepted = Replaced().accepted();
  council.lost_its_mean.insert(2);
  council.promise(2, accepted.plan, accepted);
  council.promise(3);
  council.after(9s);
  EXPECT_EQ(0U, council.last_plan.version) << "1 may have the mean, or have decided";
  EXPECT_EQ(Wait::Kind::majority, council.lead.waiting().kind);
  EXPECT_THAT(council.lead.waiting().peers, ElementsAre(PeerId{1}));
  council.after(2s);
  const wire::Plan plan = council.work_until_called();
  EXPECT_TRUE(plan.draft.minority) << "what 1 may have decided goes before it";
  EXPECT_TRUE(covers_the_batch(plan.draft, 16));
  council.after(100ms);
  EXPECT_FALSE(council.lead.resigned());
  for (const std::uint64_t id : {2, 3}) council.vote(id);
  ASSERT_TRUE(council.lead.committed());
  EXPECT_TRUE(council.lead.committed()->minority);
}

TEST(LeadMinority, ends_with_the_minority) {
  Council council;
  for (const std::uint64_t id : {2, 3}) council.lose(id);
  council.after(11s);
  EXPECT_TRUE(council.work_until_called().draft.minority);
  council.link(2);
  council.after(100ms);
  EXPECT_TRUE(council.lead.resigned()) << "a majority is here, and decides without a mark";
}

}  // namespace
}  // namespace tw::swarm
