// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/proposer.h"

#include <gtest/gtest.h>

#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using Heard = Proposer::Heard;
using Outcome = Proposer::Count::Outcome;
using Stage = Proposer::Stage;
using Start = Proposer::Start;

const Digest kOtherMean = digest_of(std::string("other mean"));

wire::Member restarted(std::uint64_t id) {
  wire::Member process = member(id);
  process.incarnation = 9;
  return process;
}

/// A plan of the round after head_of(1, 2, 3) in which 1 has done this many samples.
wire::Plan plan_of(std::uint64_t samples, const std::vector<std::uint64_t>& participants = {1, 2, 3}) {
  wire::Plan plan;
  plan.draft.round = 7;
  plan.draft.members = members(participants);
  plan.draft.contributors = {{PeerId{1}, 0, samples, RangeSet(Range{0, 1}), 0}};
  for (const std::uint64_t id : participants) plan.participants.push_back(PeerId{id});
  return plan;
}

wire::Accepted accepted(Ballot ballot, std::uint32_t version, std::uint64_t samples) {
  wire::Plan plan = plan_of(samples);
  plan.ballot = ballot;
  plan.version = version;
  return {plan, kMean};
}

/// The round after a record with members 1, 2 and 3.
struct Bid {
  explicit Bid(Ballot ballot) : proposer(head_of(members({1, 2, 3})), ballot) { here({1, 2, 3}); }

  void here(const std::vector<std::uint64_t>& ids) {
    Proposer::Processes processes;
    for (const std::uint64_t id : ids) processes.emplace(PeerId{id}, 0);
    proposer.set_here(std::move(processes));
  }

  Heard promise(const wire::Member& from, std::optional<wire::Accepted> accepted = {}) {
    wire::Progress progress;
    progress.called = accepted.has_value();
    return proposer.on_promise(from, {proposer.ballot(), progress, {}, std::move(accepted)});
  }

  bool vote(const wire::Member& from, const Digest& mean = kMean) {
    const wire::Plan& plan = *proposer.plan();
    return proposer.on_vote(from, {{7}, plan.ballot, plan.version, mean});
  }

  Proposer proposer;
};

TEST(Proposer, asks_nobody_under_ballot_0_and_decides_when_all_have_voted) {
  Bid bid(0);
  EXPECT_EQ(Stage::open, bid.proposer.stage());
  EXPECT_EQ(1U, bid.proposer.propose(plan_of(4)).version);
  bid.vote(member(1));
  bid.vote(member(2));
  EXPECT_EQ(Outcome::waits, bid.proposer.count().outcome);
  bid.vote(member(3));
  ASSERT_EQ(Outcome::agreed, bid.proposer.count().outcome);
  bid.proposer.decide();
  wire::Record decided = plan_of(4).draft;
  decided.mean = kMean;
  EXPECT_EQ(decided, bid.proposer.decision());
}

TEST(Proposer, begins_once_all_that_are_here_have_promised_and_are_a_majority) {
  Bid bid(1);
  EXPECT_EQ(Start::waits, bid.proposer.begin(false));
  EXPECT_EQ(Heard::counted, bid.promise(member(2)));
  EXPECT_EQ(Heard::counted, bid.promise(member(1)));
  EXPECT_EQ(Start::waits, bid.proposer.begin(false)) << "3 is here, too";
  bid.here({1, 2});
  EXPECT_EQ(Start::open, bid.proposer.begin(false));
}

TEST(Proposer, begins_without_a_majority_only_where_few_may) {
  Bid bid(1);
  bid.here({2});
  bid.promise(member(2));
  EXPECT_EQ(Start::waits, bid.proposer.begin(false));
  EXPECT_EQ(Start::open, bid.proposer.begin(true));
}

TEST(Proposer, takes_no_promise_of_a_process_that_came_back_under_the_id_of_a_member) {
  Bid bid(1);
  bid.here({2});
  bid.promise(member(2));
  EXPECT_EQ(Heard::nothing, bid.promise(restarted(1)));
  EXPECT_EQ(Heard::nothing, bid.promise(member(4)));
  EXPECT_EQ(Start::waits, bid.proposer.begin(false));
}

TEST(Proposer, resigns_when_a_higher_ballot_is_followed_and_takes_no_lower_promise) {
  Bid bid(4);
  EXPECT_EQ(Heard::nothing, bid.proposer.on_promise(member(1), {1, {}, {}, {}}));
  EXPECT_EQ(Heard::outbid, bid.proposer.on_promise(member(1), {5, {}, {}, {}}));
  EXPECT_TRUE(bid.proposer.resigned());
  EXPECT_EQ(5U, bid.proposer.outbid());
}

TEST(Proposer, does_not_resign_for_a_ballot_that_nobody_could_have_reached) {
  Bid bid(4);
  EXPECT_EQ(Heard::nothing, bid.proposer.on_promise(member(1), {kHighestBallot + 1, {}, {}, {}}));
  EXPECT_FALSE(bid.proposer.resigned());
}

TEST(Proposer, finishes_the_newest_plan_that_anybody_voted_for) {
  Bid bid(4);
  bid.promise(member(1), accepted(1, 2, 5));
  bid.promise(member(2), accepted(3, 1, 6));
  bid.promise(member(3), accepted(1, 9, 7));
  ASSERT_EQ(Start::bound, bid.proposer.begin(false));
  EXPECT_EQ(accepted(3, 1, 6), bid.proposer.bound());
  EXPECT_EQ((std::set<PeerId>{PeerId{2}}), bid.proposer.keepers());
  const wire::Plan& plan = bid.proposer.propose(plan_of(6));
  EXPECT_EQ((std::pair<Ballot, std::uint32_t>{4, 1}), std::pair(plan.ballot, plan.version));
}

TEST(Proposer, cannot_propose_anything_but_the_plan_that_it_must_finish) {
  Bid bid(1);
  for (const std::uint64_t id : {1, 2, 3}) bid.promise(member(id), accepted(0, 1, 6));
  ASSERT_EQ(Start::bound, bid.proposer.begin(false));
  EXPECT_DEATH(bid.proposer.propose(plan_of(5)), "finishes");
}

TEST(Proposer, resigns_when_nobody_is_here_that_has_the_mean_it_must_finish) {
  Bid bid(1);
  bid.promise(member(1), accepted(0, 1, 6));
  bid.promise(member(2));
  bid.promise(member(3));
  bid.here({2, 3});
  EXPECT_EQ(Start::stuck, bid.proposer.begin(false));
  EXPECT_TRUE(bid.proposer.resigned());
}

TEST(Proposer, waits_for_a_mean_that_those_who_voted_for_it_have_lost) {
  Bid bid(1);
  const wire::Promise lost = {1, {}, {}, accepted(0, 1, 6)};
  bid.proposer.on_promise(member(2), lost);
  bid.promise(member(3));
  bid.here({2, 3});
  EXPECT_EQ(Start::lost, bid.proposer.begin(false));
  EXPECT_TRUE(bid.proposer.lacks_mean());
  EXPECT_FALSE(bid.proposer.resigned()) << "another ballot would find the same";
  bid.here({1, 2, 3});
  bid.promise(member(1), accepted(0, 1, 6));
  EXPECT_EQ(Start::bound, bid.proposer.begin(false));
  EXPECT_EQ((std::set<PeerId>{PeerId{1}}), bid.proposer.keepers());
}

TEST(Proposer, learns_from_later_words_that_a_mean_was_lost_but_not_that_it_is_back) {
  Bid bid(1);
  bid.promise(member(2), accepted(0, 1, 6));
  bid.promise(member(3));
  bid.proposer.refresh(PeerId{2}, {});
  wire::Progress averages;
  averages.called = true;
  bid.proposer.refresh(PeerId{2}, averages);
  bid.here({2, 3});
  EXPECT_EQ(Start::lost, bid.proposer.begin(false));
}

TEST(Proposer, counts_votes_for_its_last_plan_only) {
  Bid bid(0);
  bid.proposer.propose(plan_of(4));
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_TRUE(bid.vote(member(id)));
  EXPECT_EQ(2U, bid.proposer.propose(plan_of(3)).version);
  EXPECT_EQ(Outcome::waits, bid.proposer.count().outcome) << "the votes were for the plan before";
  EXPECT_FALSE(bid.proposer.on_vote(member(1), {{7}, 0, 1, kMean}));
  EXPECT_FALSE(bid.proposer.on_vote(member(1), {{7}, 3, 2, kMean}));
  EXPECT_FALSE(bid.proposer.on_vote(member(1), {{6}, 0, 2, kMean}));
  EXPECT_FALSE(bid.proposer.on_vote(member(1), {{7, 5}, 0, 2, kMean})) << "of another history";
  EXPECT_FALSE(bid.vote(restarted(1)));
  EXPECT_EQ(0U, bid.proposer.votes());
}

TEST(Proposer, decides_with_those_that_are_here_if_members_among_them_are_a_majority) {
  Bid bid(0);
  bid.here({1, 2});
  bid.proposer.propose(plan_of(4));
  bid.vote(member(1));
  EXPECT_EQ(Outcome::waits, bid.proposer.count().outcome);
  bid.here({1});
  EXPECT_EQ(Outcome::too_few, bid.proposer.count().outcome);
  bid.here({1, 2});
  bid.vote(member(2));
  EXPECT_EQ(Outcome::agreed, bid.proposer.count().outcome);
}

TEST(Proposer, counts_no_newcomer_as_a_member) {
  Bid bid(0);
  bid.proposer.set_here({{PeerId{1}, 0}, {PeerId{2}, 9}, {PeerId{4}, 0}});
  bid.proposer.propose(plan_of(4, {1, 2, 4}));
  for (const wire::Member& voter : {member(1), restarted(2), member(4)}) EXPECT_TRUE(bid.vote(voter));
  EXPECT_EQ(Outcome::too_few, bid.proposer.count().outcome);
}

TEST(Proposer, counts_no_vote_of_a_process_that_was_replaced) {
  Bid bid(0);
  bid.proposer.propose(plan_of(4));
  for (const std::uint64_t id : {1, 2}) bid.vote(member(id));
  bid.proposer.set_here({{PeerId{1}, 0}, {PeerId{2}, 9}});
  EXPECT_EQ(Outcome::too_few, bid.proposer.count().outcome);
}

TEST(Proposer, decides_alone_where_the_record_says_so) {
  Bid bid(0);
  bid.here({3});
  wire::Plan plan = plan_of(4);
  plan.draft.minority = true;
  bid.proposer.propose(std::move(plan));
  bid.vote(member(3));
  EXPECT_EQ(Outcome::agreed, bid.proposer.count().outcome);
}

TEST(Proposer, names_the_peer_whose_mean_is_outvoted) {
  Bid bid(0);
  bid.proposer.propose(plan_of(4));
  bid.vote(member(1), kOtherMean);
  bid.vote(member(2));
  bid.vote(member(3));
  EXPECT_EQ(Outcome::differ, bid.proposer.count().outcome);
  EXPECT_EQ(PeerId{1}, bid.proposer.count().odd);
  EXPECT_DEATH(bid.proposer.decide(), "agreed");
}

TEST(Proposer, may_propose_another_set_of_contributions_after_it_reopened) {
  Bid bid(0);
  bid.proposer.propose(plan_of(4));
  bid.proposer.reopen();
  EXPECT_FALSE(bid.vote(member(1))) << "the plan is no more";
  EXPECT_EQ(2U, bid.proposer.propose(plan_of(3)).version);
  EXPECT_EQ(Stage::proposed, bid.proposer.stage());
}

}  // namespace
}  // namespace tw::swarm
