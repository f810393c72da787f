// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/acceptor.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/prng.h"
#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

wire::Plan plan(Ballot ballot, std::uint32_t version) {
  wire::Plan plan;
  plan.ballot = ballot;
  plan.version = version;
  plan.draft.round = 7;
  return plan;
}

std::optional<wire::Vote> votes(Acceptor& acceptor) {
  acceptor.complete(kMean);
  return acceptor.vote();
}

TEST(Acceptor, votes_for_the_plan_that_it_took) {
  Acceptor acceptor;
  EXPECT_FALSE(votes(acceptor).has_value());
  EXPECT_TRUE(acceptor.take(plan(0, 1)));
  EXPECT_FALSE(acceptor.vote().has_value()) << "its mean is not here";
  EXPECT_EQ((wire::Vote{plan(0, 1).step(), 0, 1, kMean}), votes(acceptor));
  EXPECT_EQ((wire::Vote{plan(0, 1).step(), 0, 1, kMean}), acceptor.vote()) << "once more, the same";
  EXPECT_EQ((wire::Accepted{plan(0, 1), kMean}), acceptor.accepted());
}

TEST(Acceptor, follows_the_process_that_owns_a_ballot_unless_it_was_overtaken) {
  using Answer = Acceptor::Answer;
  Acceptor acceptor;
  const std::vector<wire::Member> three = members({1, 2, 3});
  EXPECT_EQ(Answer::follow, acceptor.answer(three, member(2), 1));
  EXPECT_EQ(Answer::follow, acceptor.answer(three, member(2), 4));
  EXPECT_EQ(Answer::ignore, acceptor.answer(three, member(3), 1));
  wire::Member restarted = member(2);
  restarted.incarnation = 9;
  EXPECT_EQ(Answer::ignore, acceptor.answer(three, restarted, 1)) << "it is no member";
  acceptor.promise(3);
  EXPECT_EQ(Answer::bid_higher, acceptor.answer(three, member(2), 1));
  EXPECT_EQ(Answer::follow, acceptor.answer(three, member(1), 3));
}

TEST(Acceptor, follows_no_ballot_that_nobody_could_have_reached) {
  const std::vector<wire::Member> three = members({1, 2, 3});
  const Ballot made_up = next_ballot(three, PeerId{2}, kHighestBallot);
  Acceptor acceptor;
  EXPECT_EQ(Acceptor::Answer::ignore, acceptor.answer(three, member(2), made_up));
  acceptor.outbid(std::numeric_limits<Ballot>::max());
  EXPECT_EQ(1U, acceptor.bid(three, member(2), false)) << "a number beyond the highest would begin anew";
}

TEST(Acceptor, votes_and_promises_for_the_seats_that_it_keeps) {
  Acceptor keeper;
  keeper.take_seat(PeerId{3}, 4);
  keeper.take_seat(PeerId{3}, 4);
  EXPECT_FALSE(keeper.take(plan(3, 1))) << "the member that left promised ballot 4";
  ASSERT_TRUE(keeper.take(plan(4, 1)));
  const std::optional<wire::Vote> vote = votes(keeper);
  ASSERT_TRUE(vote.has_value());
  EXPECT_EQ(std::vector{PeerId{3}}, vote->seats);
  keeper.begin_round(true);
  EXPECT_EQ(std::vector{PeerId{3}}, keeper.seats()) << "the same round";
  keeper.begin_round(false);
  EXPECT_TRUE(keeper.seats().empty());
}

TEST(Acceptor, gives_no_seat_after_a_vote_in_the_round) {
  Acceptor acceptor;
  acceptor.take(plan(0, 1));
  EXPECT_TRUE(acceptor.may_give_seat());
  votes(acceptor);
  EXPECT_FALSE(acceptor.may_give_seat());
  acceptor.begin_round(true);
  EXPECT_FALSE(acceptor.may_give_seat()) << "the vote stands, whatever became of the mean";
  acceptor.begin_round(false);
  EXPECT_TRUE(acceptor.may_give_seat());
}

TEST(Acceptor, answers_a_prepare_with_all_that_it_knows) {
  Acceptor acceptor;
  acceptor.take(plan(0, 1));
  votes(acceptor);
  acceptor.take(plan(0, 2));
  acceptor.promise(4);
  const wire::Promise word = acceptor.word(4, {});
  EXPECT_EQ(4U, word.ballot);
  EXPECT_EQ(plan(0, 2), word.plan);
  EXPECT_EQ((wire::Accepted{plan(0, 1), kMean}), word.accepted);
}

TEST(Acceptor, says_what_its_plan_becomes_once_the_mean_is_here) {
  Acceptor acceptor;
  acceptor.take(plan(0, 1));
  EXPECT_FALSE(acceptor.expected().has_value());
  acceptor.complete(kMean);
  wire::Record record = plan(0, 1).draft;
  record.mean = kMean;
  EXPECT_EQ(record, acceptor.expected());
  acceptor.take(plan(0, 2));
  EXPECT_FALSE(acceptor.expected().has_value()) << "the mean was that of the plan before";
}

TEST(Acceptor, bids_with_its_own_ballots_and_with_none_twice) {
  const std::vector<wire::Member> three = members({1, 2, 3});
  Acceptor first;
  EXPECT_EQ(0U, first.bid(three, member(1), true));
  EXPECT_EQ(3U, first.bid(three, member(1), true)) << "ballot 0 was led";
  first.outbid(4);
  EXPECT_EQ(6U, first.bid(three, member(1), true));
  Acceptor second;
  second.promise(3);
  EXPECT_EQ(4U, second.bid(three, member(2), true));
  Acceptor third;
  EXPECT_EQ(2U, third.bid(three, member(3), false));
  third.begin_round(true);
  EXPECT_EQ(5U, third.bid(three, member(3), false)) << "what it led is still in the world";
}

TEST(Acceptor, takes_no_older_plan) {
  Acceptor acceptor;
  EXPECT_TRUE(acceptor.take(plan(3, 2)));
  EXPECT_FALSE(acceptor.take(plan(3, 2))) << "it has this one";
  EXPECT_FALSE(acceptor.take(plan(3, 1)));
  EXPECT_FALSE(acceptor.take(plan(2, 9)));
  EXPECT_TRUE(acceptor.take(plan(3, 3)));
  EXPECT_TRUE(acceptor.take(plan(4, 1)));
}

TEST(Acceptor, does_not_vote_once_it_has_promised_a_higher_ballot) {
  Acceptor acceptor;
  acceptor.take(plan(0, 1));
  acceptor.promise(2);
  EXPECT_FALSE(votes(acceptor).has_value());
  EXPECT_FALSE(acceptor.take(plan(0, 2)));
  EXPECT_FALSE(acceptor.accepted().has_value());
  acceptor.promise(1);
  EXPECT_EQ(2U, acceptor.promised());
}

TEST(Acceptor, keeps_what_it_accepted_while_a_newer_plan_is_averaged) {
  Acceptor acceptor;
  acceptor.take(plan(0, 1));
  votes(acceptor);
  acceptor.take(plan(1, 1));
  EXPECT_EQ((wire::Accepted{plan(0, 1), kMean}), acceptor.accepted());
  EXPECT_EQ(plan(1, 1), *acceptor.plan());
}

TEST(Acceptor, that_starts_over_keeps_its_word_and_takes_its_plan_once_more) {
  Acceptor acceptor;
  acceptor.take(plan(2, 2));
  votes(acceptor);
  acceptor.begin_round(true);
  EXPECT_EQ(2U, acceptor.promised());
  EXPECT_EQ((wire::Accepted{plan(2, 2), kMean}), acceptor.accepted());
  EXPECT_EQ(plan(2, 2), *acceptor.plan()) << "the others may have it from here";
  EXPECT_FALSE(votes(acceptor).has_value()) << "it has no mean of it any more";
  EXPECT_FALSE(acceptor.take(plan(2, 1))) << "older than what it voted for";
  EXPECT_FALSE(acceptor.take(plan(1, 9)));
  EXPECT_TRUE(acceptor.take(plan(2, 2)));
  EXPECT_EQ((wire::Vote{plan(2, 2).step(), 2, 2, kMean}), votes(acceptor));
}

TEST(Acceptor, says_in_its_promise_whether_the_mean_that_it_voted_for_is_still_here) {
  Acceptor acceptor;
  acceptor.take(plan(0, 1));
  EXPECT_FALSE(acceptor.word(1, {}).progress.called) << "it says what it is told, before it has voted";
  votes(acceptor);
  EXPECT_TRUE(acceptor.word(1, {}).progress.called);
  acceptor.begin_round(true);
  acceptor.take(plan(0, 1));
  wire::Progress averages;
  averages.called = true;
  EXPECT_FALSE(acceptor.word(1, averages).progress.called) << "the plan is here once more, its mean is not";
  votes(acceptor);
  EXPECT_TRUE(acceptor.word(1, {}).progress.called);
}

TEST(Acceptor, knows_nothing_of_another_round) {
  Acceptor acceptor;
  acceptor.bid(members({1, 2, 3}), member(1), true);
  acceptor.take(plan(2, 2));
  votes(acceptor);
  acceptor.begin_round(false);
  EXPECT_EQ(Acceptor::Stage::idle, acceptor.stage());
  EXPECT_EQ(0U, acceptor.promised());
  EXPECT_FALSE(acceptor.plan() || acceptor.accepted());
  EXPECT_EQ(0U, acceptor.bid(members({1, 2, 3}), member(1), true));
}

TEST(Acceptor, never_votes_below_a_promise_or_an_earlier_vote) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng prng(seed);
    Acceptor acceptor;
    Ballot promised = 0;
    std::pair<Ballot, std::uint32_t> voted{0, 0};
    for (int i = 0; i < 60; ++i) {
      const auto ballot = static_cast<Ballot>(prng.below(6));
      const std::uint64_t what = prng.below(3);
      if (what == 0) {
        acceptor.promise(ballot);
        promised = std::max(promised, ballot);
      }
      if (what == 1 && acceptor.take(plan(ballot, static_cast<std::uint32_t>(1 + prng.below(4)))))
        promised = std::max(promised, ballot);
      const std::optional<wire::Vote> vote = what == 2 ? votes(acceptor) : std::nullopt;
      if (!vote) continue;
      ASSERT_GE(vote->ballot, promised) << "seed " << seed;
      ASSERT_GE(std::pair(vote->ballot, vote->version), voted) << "seed " << seed;
      voted = {vote->ballot, vote->version};
    }
  }
}

}  // namespace
}  // namespace tw::swarm
