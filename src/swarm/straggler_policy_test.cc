// SPDX-License-Identifier: Apache-2.0
#include "swarm/straggler_policy.h"

#include <gtest/gtest.h>

#include "swarm/ballots/test_records.h"

namespace tw::swarm {
namespace {

using wire::StallCause;
using namespace std::chrono_literals;
using Sentence = StragglerPolicy::Sentence;
using Verdict = StragglerPolicy::Verdict;

/// 1 leads; its plan, of 2 s, gives each member four of twelve segments.
struct Judge {
  explicit Judge(const std::vector<std::uint64_t>& ids = {1, 2, 3})
      : peers(member(1), members(ids), false), proposer(head_of(members(ids)), 0) {
    PeerStatus::Live live;
    for (const std::uint64_t id : ids) live.emplace(PeerId{id}, 0);
    peers.set_live(live, [](PeerId) { return false; });
    proposer.set_here(peers.counted());
    wire::Plan plan;
    plan.draft.round = 7;
    plan.expected_s = 2;
    for (const std::uint64_t id : ids) {
      plan.participants.push_back(PeerId{id});
      plan.shares.push_back({PeerId{id}, 4 * (id - 1), 4});
    }
    policy.planned(now, false);
    proposer.propose(plan);
  }

  std::optional<Verdict> report(std::uint64_t from, std::uint64_t suspect, StallCause cause,
                                RangeSet missing = {}) {
    return policy.on_report(now, PeerId{from}, {{7}, PeerId{suspect}, cause, std::move(missing)});
  }

  std::optional<Verdict> after(Duration time) {
    now += time;
    return policy.judge(now, peers, proposer);
  }

  void relieved() {
    policy.planned(now, true);
    policy.relieved(now);
  }

  void vote(std::uint64_t id) { proposer.on_vote(member(id), {{7}, 0, proposer.plan()->version, kMean}); }

  PeerStatus peers;
  Proposer proposer;
  StragglerPolicy policy{12};
  Instant now = kStart;
};

TEST(Deadline, adds_the_floor_or_takes_the_longer) {
  EXPECT_EQ(5s, (Deadline{2s, 1.5, 2s}.sum()));
  EXPECT_EQ(3s, (Deadline{2s, 1.5, 2s}.longer()));
  EXPECT_EQ(2s, (Deadline{1s, 1.5, 2s}.longer()));
  const Duration century = from_seconds(1e30);
  EXPECT_LT(century, (Deadline{century, 10, 2s}.sum())) << "whatever a remote expects";
}

TEST(StragglerPolicy, has_a_deadline_for_everybody) {
  EXPECT_EQ(2s, silence_limit(10ms, 250ms, false));
  EXPECT_EQ(1s, silence_limit(10ms, 250ms, true));
  EXPECT_EQ(6s, silence_limit(1s, 250ms, false));
  EXPECT_EQ(8s, silence_limit(10ms, 2s, true));
  EXPECT_EQ(3500ms, overdue_after(2s));
  EXPECT_EQ(5s, stalled_after(2s));
  EXPECT_EQ(10s, vote_missing_after(2s));
  EXPECT_EQ(120s, hung_after({}));
  EXPECT_EQ(10s, hung_after(0s));
  EXPECT_EQ(30s, hung_after(3s));
  EXPECT_EQ(600s, hung_after(from_seconds(1e30)));
}

TEST(StragglerPolicy, expects_more_time_where_joiners_send_or_lines_are_thin) {
  EXPECT_EQ(2s, expected_reduce(2s, 0s, 3, 3));
  EXPECT_EQ(4s, expected_reduce(2s, 0s, 6, 3));
  EXPECT_EQ(10s, expected_reduce(2s, 0s, 60, 3)) << "a guess ends here";
  EXPECT_EQ(20s, expected_reduce(20s, 0s, 60, 3));
  EXPECT_EQ(5s, expected_reduce(2s, 5s, 3, 3));
  EXPECT_EQ(6s, expected_reduce(2s, 60s, 3, 3)) << "a line may carry more than was ever seen";
  EXPECT_EQ(9s, expected_reduce(2s, 9s, 3, 3, true)) << "a joiner may be on a thin line";
  EXPECT_EQ(10s, expected_reduce(2s, 60s, 3, 3, true));
}

TEST(StragglerPolicy, refuses_at_once_what_is_certain) {
  Judge judge;
  for (const StallCause cause : {StallCause::not_finite, StallCause::too_large}) {
    const std::optional<Verdict> verdict = judge.report(1, 3, cause);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(Sentence::refuse, verdict->sentence);
    EXPECT_EQ(PeerId{3}, verdict->peer);
  }
  EXPECT_TRUE(judge.report(3, 3, StallCause::owes_contribution)) << "by its own word";
  EXPECT_FALSE(judge.report(2, 3, StallCause::owes_contribution));
}

TEST(StragglerPolicy, excludes_the_peer_with_most_accusers_and_of_two_the_younger) {
  Judge judge({1, 2, 3, 4});
  judge.report(2, 3, StallCause::unreachable);
  judge.report(3, 2, StallCause::unreachable);
  EXPECT_FALSE(judge.after(400ms)) << "others may still complain";
  ASSERT_EQ(PeerId{3}, judge.after(100ms)->peer);
  judge.report(4, 2, StallCause::unreachable);
  EXPECT_EQ(PeerId{2}, judge.after(500ms)->peer);
  judge.policy.forget(PeerId{2});
  EXPECT_FALSE(judge.after(1s)) << "neither what it said stands nor what was said of it";
}

TEST(StragglerPolicy, excludes_a_peer_that_owes_once_the_plan_is_overdue) {
  Judge judge;
  judge.after(4900ms);
  judge.report(2, 3, StallCause::owes_mean);
  judge.report(3, 1, StallCause::owes_contribution);
  EXPECT_FALSE(judge.after(0s));
  judge.after(100ms);
  judge.report(2, 3, StallCause::owes_mean);
  judge.report(3, 1, StallCause::owes_contribution);
  const std::optional<Verdict> verdict = judge.after(0s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(PeerId{1}, verdict->peer) << "3 waits for 1";
  EXPECT_EQ(Sentence::exclude, verdict->sentence);
  EXPECT_FALSE(judge.after(2s)) << "it is not said again";
}

// long_rounds 67: two slow shares were moved, and a peer that waited for their segments was excluded 0.2 s
// before it had them.
TEST(StragglerPolicy, gives_time_anew_when_segments_move_but_not_for_ever) {
  Judge judge;
  const auto owes = [&](Duration until) {
    judge.after(until);
    judge.report(3, 1, StallCause::owes_contribution);
    return judge.after(0s).has_value();
  };
  for (int relief = 0; relief < StragglerPolicy::kReliefs; ++relief) {
    EXPECT_FALSE(owes(4800ms));
    judge.relieved();
    EXPECT_FALSE(owes(100ms));
  }
  EXPECT_FALSE(owes(4800ms));
  judge.relieved();
  EXPECT_TRUE(owes(100ms)) << "the time of the last relief that counts is over";
}

// thin_lines 124: a peer that only waited for a thin line was excluded, because the report about that line
// was to be made again 0.4 s later.
TEST(StragglerPolicy, waits_for_what_is_said_of_contributions_before_it_blames_an_owner_of_means) {
  for (const StallCause later : {StallCause::owes_site_sum, StallCause::owes_mean, StallCause::owes_copy}) {
    Judge judge;
    judge.after(5s);
    judge.report(2, 3, later);
    EXPECT_FALSE(judge.after(0s));
    EXPECT_FALSE(judge.after(400ms));
    judge.report(3, 1, StallCause::owes_contribution);
    EXPECT_EQ(PeerId{1}, judge.after(0s)->peer);
  }
}

// thin_lines 275: a peer with little bandwidth had heard nothing for 0.5 s, since all others waited for its
// segments. When the plan was overdue, 0.97 s later, it had received segments again.
TEST(StragglerPolicy, does_not_count_what_was_said_before_the_plan_was_overdue) {
  Judge judge;
  judge.after(4900ms);
  judge.report(2, 3, StallCause::owes_mean);
  EXPECT_FALSE(judge.after(100ms));
  EXPECT_FALSE(judge.after(900ms));
  judge.report(2, 3, StallCause::owes_mean);
  EXPECT_FALSE(judge.after(0s)) << "others may name a cause";
  EXPECT_EQ(PeerId{3}, judge.after(100ms)->peer);
}

TEST(StragglerPolicy, refuses_a_peer_that_owes_where_the_majority_hangs_on_its_vote) {
  Judge judge({1, 2});
  judge.after(5s);
  judge.report(2, 1, StallCause::owes_contribution);
  EXPECT_EQ(Sentence::refuse, judge.after(0s)->sentence);
  judge.report(1, 2, StallCause::owes_contribution);
  judge.policy.forget_words_of(PeerId{2});
  EXPECT_EQ(Sentence::exclude, judge.after(0s)->sentence) << "1 alone is half with the first";
}

TEST(StragglerPolicy, gives_a_plan_with_a_joiner_no_more_time_for_what_was_owed) {
  Judge judge;
  judge.after(4s);
  judge.policy.planned(judge.now, true);
  judge.proposer.propose(wire::Plan(*judge.proposer.plan()));
  judge.after(1s);
  judge.report(1, 2, StallCause::owes_contribution);
  EXPECT_EQ(PeerId{2}, judge.after(0s)->peer);
}

TEST(StragglerPolicy, excludes_a_peer_that_has_no_mean_while_most_have_it) {
  Judge judge;
  for (const std::uint64_t id : {1, 2}) judge.vote(id);
  EXPECT_FALSE(judge.after(9900ms));
  EXPECT_EQ(PeerId{3}, judge.after(100ms)->peer);
}

TEST(StragglerPolicy, relieves_a_slow_peer_of_what_others_lack_of_its_share) {
  Judge judge;
  const RangeSet missing(Range{6, 4});
  judge.report(1, 2, StallCause::slow_mean, missing);
  judge.after(400ms);
  judge.report(1, 2, StallCause::slow_mean, missing);
  const std::optional<Verdict> verdict = judge.after(0s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(Sentence::relieve, verdict->sentence);
  EXPECT_EQ(RangeSet(Range{6, 2}), verdict->segments) << "8 and 9 are of the share of 3";
  EXPECT_FALSE(judge.after(0s)) << "it is said of the plan before";
}

TEST(StragglerPolicy, takes_slow_contributions_for_the_cause_of_slow_means) {
  Judge judge;
  for (int i = 0; i < 2; ++i) {
    judge.report(1, 2, StallCause::slow_mean, RangeSet(Range{4, 4}));
    judge.report(2, 3, StallCause::slow_contribution, RangeSet(Range{8, 4}));
    if (i == 0) judge.after(300ms);
    judge.now += 100ms;
  }
  EXPECT_EQ(PeerId{3}, judge.after(0s)->peer);
}

TEST(StragglerPolicy, excludes_a_peer_that_returns_no_microbatch_unless_it_is_alone) {
  Judge judge;
  const std::vector<Awaited> awaited = {{PeerId{2}, 29s, 3s}, {PeerId{3}, 30s, 3s}};
  EXPECT_EQ(PeerId{3}, StragglerPolicy::judge_work(judge.peers, awaited)->peer);
  EXPECT_FALSE(StragglerPolicy::judge_work(judge.peers, {{PeerId{9}, 700s, {}}})) << "it is not here";
  Judge alone({1});
  EXPECT_FALSE(StragglerPolicy::judge_work(alone.peers, {{PeerId{1}, 700s, {}}}));
}

TEST(StragglerPolicy, keeps_nothing_of_a_peer_that_is_gone) {
  Judge judge;
  judge.report(1, 2, StallCause::unreachable);
  judge.report(2, 3, StallCause::owes_mean);
  judge.report(3, 2, StallCause::slow_mean);
  EXPECT_EQ(5U, judge.policy.notes());
  judge.policy.forget(PeerId{2});
  EXPECT_EQ(1U, judge.policy.notes()) << "1 complained once";
}

}  // namespace
}  // namespace tw::swarm
