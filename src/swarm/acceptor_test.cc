// SPDX-License-Identifier: Apache-2.0
#include "swarm/acceptor.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "swarm/test_records.h"

namespace tw {
namespace {

Plan plan(Ballot ballot, std::uint32_t version) {
  Plan plan;
  plan.ballot = ballot;
  plan.version = version;
  plan.draft.round = 7;
  return plan;
}

TEST(Acceptor, votes_for_the_plan_that_it_took) {
  Acceptor acceptor;
  EXPECT_FALSE(acceptor.vote(kMean).has_value());
  EXPECT_TRUE(acceptor.take(plan(0, 1)));
  EXPECT_EQ((Vote{7, 0, 1, kMean}), acceptor.vote(kMean));
  EXPECT_EQ((Accepted{plan(0, 1), kMean}), acceptor.accepted());
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
  EXPECT_FALSE(acceptor.vote(kMean).has_value());
  EXPECT_FALSE(acceptor.take(plan(0, 2)));
  EXPECT_FALSE(acceptor.accepted().has_value());
  acceptor.promise(1);
  EXPECT_EQ(2U, acceptor.promised());
}

TEST(Acceptor, keeps_what_it_accepted_while_a_newer_plan_is_averaged) {
  Acceptor acceptor;
  acceptor.take(plan(0, 1));
  acceptor.vote(kMean);
  acceptor.take(plan(1, 1));
  EXPECT_EQ((Accepted{plan(0, 1), kMean}), acceptor.accepted());
  EXPECT_EQ(plan(1, 1), acceptor.plan());
}

TEST(Acceptor, that_starts_over_keeps_its_word_and_takes_its_plan_once_more) {
  Acceptor acceptor;
  acceptor.take(plan(2, 2));
  acceptor.vote(kMean);
  acceptor.start_over();
  EXPECT_EQ(2U, acceptor.promised());
  EXPECT_EQ((Accepted{plan(2, 2), kMean}), acceptor.accepted());
  EXPECT_EQ(plan(2, 2), acceptor.plan()) << "the others may have it from here";
  EXPECT_FALSE(acceptor.vote(kMean).has_value()) << "it has no mean of it any more";
  EXPECT_FALSE(acceptor.take(plan(2, 1))) << "older than what it voted for";
  EXPECT_FALSE(acceptor.take(plan(1, 9)));
  EXPECT_TRUE(acceptor.take(plan(2, 2)));
  EXPECT_EQ((Vote{7, 2, 2, kMean}), acceptor.vote(kMean));
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
      const std::optional<Vote> vote = what == 2 ? acceptor.vote(kMean) : std::nullopt;
      if (!vote) continue;
      ASSERT_GE(vote->ballot, promised) << "seed " << seed;
      ASSERT_GE(std::pair(vote->ballot, vote->version), voted) << "seed " << seed;
      voted = {vote->ballot, vote->version};
    }
  }
}

}  // namespace
}  // namespace tw
