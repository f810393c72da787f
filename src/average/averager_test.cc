// SPDX-License-Identifier: Apache-2.0
#include "average/averager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "average/reduction/test_decoded.h"

namespace tw::average {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr Instant kOpened = Instant{} + 1h;
constexpr Geometry kVector{.length = 4, .segment_length = 2};
constexpr StepId kFirst{1};
constexpr StepId kSecond{2};
constexpr PeerId kA{1};
constexpr PeerId kB{2};

/// Each owns one segment and contributes its slot 0.
wire::Plan plan_of_both(StepId step, double expected_s = 0) {
  wire::Plan plan;
  plan.version = 1;
  plan.draft.round = step.round;
  for (const PeerId peer : {kA, kB})
    plan.draft.contributors.push_back({peer, 0, 1, RangeSet(Range{peer.value, 1})});
  plan.shares = {{kA, 0, 1}, {kB, 1, 1}};
  plan.participants = {kA, kB};
  plan.expected_s = expected_s;
  return plan;
}

Averager averager_of(PeerId self, std::uint64_t probe_from = 1 << 20) {
  return Averager(
      {.self = self, .fragments = kVector, .codec = codec::Codec::fp32, .probe_from = probe_from});
}

/// Delivers all segments that `from` has for `to`.
std::vector<Averager::Refused> deliver(Averager& from, PeerId sender, Averager& to, PeerId receiver) {
  std::vector<Averager::Refused> refused;
  while (const std::optional<wire::Message> message = from.next_segment(receiver)) {
    if (auto one = to.on_bulk(kOpened, sender, *message)) refused.push_back(*one);
  }
  return refused;
}

Duration no_time(PeerId) { return {}; }

class TwoAveragers : public ::testing::Test {
 protected:
  void contribute(Averager& averager, StepId step, const std::vector<float>& sum) {
    const std::vector<wire::Contribution> due = averager.due(step);
    ASSERT_EQ(1U, due.size());
    averager.contribute(step, due.front(), {sum}, {});
    EXPECT_THAT(averager.due(step), IsEmpty());
  }

  void call(StepId step, double expected_s = 0) {
    for (Averager* averager : {&a, &b})
      ASSERT_TRUE(
          averager->adopt(kOpened, swarm::shared_plan(plan_of_both(step, expected_s)), kOpened - 40s));
  }

  Averager a = averager_of(kA), b = averager_of(kB);
  std::vector<float> of_a = {1, 2, 3, 4}, of_b = {3, 4, 5, 6};
};

TEST_F(TwoAveragers, have_the_mean_of_both_contributions_and_say_so_once) {
  for (Averager* averager : {&a, &b}) EXPECT_THAT(averager->open(kOpened, kFirst), IsEmpty());
  EXPECT_THAT(a.due(kFirst), IsEmpty()) << "there is no plan";
  call(kFirst);
  contribute(a, kFirst, of_a);
  contribute(b, kFirst, of_b);
  EXPECT_THAT(deliver(a, kA, b, kB), IsEmpty());
  EXPECT_THAT(deliver(b, kB, a, kA), IsEmpty());
  EXPECT_THAT(deliver(a, kA, b, kB), IsEmpty());
  const Averager::News news = a.take_news(kFirst);
  EXPECT_TRUE(news.scattered && news.gathered);
  ASSERT_TRUE(news.mean);
  EXPECT_EQ(news.mean, b.take_news(kFirst).mean);
  EXPECT_FALSE(a.take_news(kFirst).mean);
  EXPECT_FALSE(a.take_news(kFirst).gathered);

  const Averager::Mean mean = a.finish(kFirst, plan_of_both(kFirst).draft.contributors);
  EXPECT_EQ((std::vector<float>{2, 3, 4, 5}), decoded(codec::Codec::fp32, kVector, mean.segments));
  EXPECT_THAT(mean.own, ElementsAre(Field(&wire::Contribution::peer, kA)));
  EXPECT_FALSE(a.is_open(kFirst));
}

TEST_F(TwoAveragers, keep_what_comes_before_its_step_is_open) {
  a.open(kOpened, kFirst);
  ASSERT_TRUE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  contribute(a, kFirst, of_a);
  EXPECT_THAT(deliver(a, kA, b, kB), IsEmpty()) << "b has not opened it";
  EXPECT_LT(0U, b.held_bytes());
  EXPECT_THAT(b.open(kOpened, kFirst), IsEmpty());
  ASSERT_TRUE(b.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  EXPECT_THAT(b.debts(kFirst),
              ElementsAre(Field(&Reduction::Debt::here, 1), Field(&Reduction::Debt::here, 0)));
}

TEST_F(TwoAveragers, drop_what_a_stranger_sent_when_its_link_closes_but_not_what_a_member_did) {
  const wire::Scatter early{{1}, 0, 0, Blob(std::vector<std::byte>(8))};
  a.on_bulk(kOpened, kB, early);
  a.on_close(kB, true);
  EXPECT_EQ(Averager::kEarlyOverhead + 8, a.held_bytes());
  a.on_close(kB, false);
  EXPECT_EQ(0U, a.held_bytes());
}

TEST_F(TwoAveragers, keep_no_more_than_two_vectors_of_one_sender) {
  const wire::Scatter early{{1}, 0, 0, Blob(std::vector<std::byte>(8))};
  for (int i = 0; i < 100; ++i) a.on_bulk(kOpened, kB, early);
  EXPECT_EQ(4 * (Averager::kEarlyOverhead + 8), a.held_bytes()) << "two vectors of two segments";
  a.abandon();
  EXPECT_EQ(0U, a.held_bytes());
}

TEST_F(TwoAveragers, tell_what_averages_another_vector_from_what_is_merely_refused) {
  a.open(kOpened, kFirst);
  const auto sent = [&](std::uint64_t segment, std::size_t bytes) {
    return a.on_bulk(kOpened, kB, wire::Scatter{{1}, 0, segment, Blob(std::vector<std::byte>(bytes))});
  };
  EXPECT_FALSE(sent(0, 8));
  ASSERT_TRUE(sent(0, 12));
  EXPECT_TRUE(sent(0, 12)->nonsense);
  ASSERT_TRUE(sent(0, 8)) << "twice";
  EXPECT_FALSE(sent(0, 8)->nonsense);
}

TEST_F(TwoAveragers, say_what_came_early_and_is_refused_when_the_step_opens) {
  a.on_bulk(kOpened, kB, wire::Scatter{{1}, 0, 7, Blob(std::vector<std::byte>(8))});
  EXPECT_THAT(a.open(kOpened, kFirst), ElementsAre(AllOf(Field(&Averager::Refused::from, kB),
                                                         Field(&Averager::Refused::nonsense, true))));
}

// lost_majority 20261126100956: a side without a majority gave its history up in the middle of a round.
// Segments of that round came into the round with the same number, and were averaged in place of others.
TEST_F(TwoAveragers, have_no_use_for_what_belongs_to_another_history) {
  wire::Scatter scatter{{1, 8}, 0, 0, Blob(std::vector<std::byte>(8))};
  a.on_bulk(kOpened, kB, scatter);
  EXPECT_NE(0U, a.held_bytes()) << "which one it will be is not known yet";
  a.open(kOpened, {1, 7});
  EXPECT_EQ(0U, a.held_bytes());
  EXPECT_FALSE(a.on_bulk(kOpened, kB, scatter));
  EXPECT_EQ(0U, a.held_bytes());
  scatter.step.after = 7;
  EXPECT_FALSE(a.on_bulk(kOpened, kB, scatter));
  EXPECT_NE(0U, a.held_bytes());
}

TEST_F(TwoAveragers, have_no_use_for_what_comes_late) {
  a.open(kOpened, kFirst);
  a.open(kOpened, kSecond);
  EXPECT_FALSE(a.is_open(kFirst));
  EXPECT_FALSE(a.on_bulk(kOpened, kB, wire::Scatter{{1}, 0, 0, Blob(std::vector<std::byte>(8))}));
  EXPECT_EQ(0U, a.held_bytes());
  EXPECT_FALSE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
}

// storm 2424: each new plan brought a segment of another peer.
TEST_F(TwoAveragers, ask_again_though_others_send_meanwhile) {
  a.open(kOpened, kFirst);
  ASSERT_TRUE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  const PeerId third{3};
  std::vector<Duration> asked;
  for (Duration after = 0s; after < 20s; after += 250ms) {
    if (after % 3s == 0s) a.on_padding(kOpened + after, third);
    for (const Averager::Objection& o : a.objections(kOpened + after, kFirst, no_time))
      if (o.send_again) asked.push_back(after);
  }
  EXPECT_THAT(asked, ElementsAre(8s, 16s)) << "no more often: it may be on its way";
}

TEST_F(TwoAveragers, complain_when_nothing_comes_and_ask_again_after_a_while) {
  a.open(kOpened, kFirst);
  ASSERT_TRUE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  const auto objections = [&](Duration after) { return a.objections(kOpened + after, kFirst, no_time); };
  EXPECT_THAT(objections(400ms), IsEmpty());
  EXPECT_THAT(objections(500ms),
              ElementsAre(AllOf(Field(&Averager::Objection::suspect, kB),
                                Field(&Averager::Objection::why, wire::StallCause::owes_contribution),
                                Field(&Averager::Objection::send_again, false))));
  EXPECT_THAT(objections(900ms), IsEmpty()) << "it was told just now";
  a.on_padding(kOpened + 1s, kB);
  EXPECT_THAT(objections(1400ms), IsEmpty()) << "the line is busy";
  EXPECT_THAT(objections(9s), ElementsAre(Field(&Averager::Objection::send_again, true)));
}

// storm 6630: the leader sent the plan again every 7.75 s, because the round was slow.
TEST_F(TwoAveragers, ask_again_though_the_plan_comes_again_meanwhile) {
  a.open(kOpened, kFirst);
  const auto objections = [&](Duration after) { return a.objections(kOpened + after, kFirst, no_time); };
  ASSERT_TRUE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  EXPECT_THAT(objections(7s), ElementsAre(Field(&Averager::Objection::send_again, false)));
  wire::Plan again = plan_of_both(kFirst);
  ++again.version;
  ASSERT_TRUE(a.adopt(kOpened + 7750ms, swarm::shared_plan(again), kOpened));
  EXPECT_THAT(objections(8200ms), IsEmpty()) << "what it owes by this plan is young";
  EXPECT_THAT(objections(8250ms), ElementsAre(Field(&Averager::Objection::send_again, true)));
}

TEST_F(TwoAveragers, give_a_far_peer_three_round_trips) {
  a.open(kOpened, kFirst);
  ASSERT_TRUE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  const auto far = [](PeerId) { return Duration(300ms); };
  EXPECT_THAT(a.objections(kOpened + 899ms, kFirst, far), IsEmpty());
  EXPECT_THAT(a.objections(kOpened + 900ms, kFirst, far), testing::SizeIs(1));
}

TEST_F(TwoAveragers, name_what_a_slow_peer_still_owes) {
  a.open(kOpened, kFirst);
  ASSERT_TRUE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst, 10)), kOpened));
  a.on_padding(kOpened + 7s, kB);  // it has not stalled
  EXPECT_THAT(a.objections(kOpened + 7400ms, kFirst, no_time), IsEmpty()) << "most of its time is not over";
  a.on_padding(kOpened + 7500ms, kB);
  EXPECT_THAT(a.objections(kOpened + 7500ms, kFirst, no_time),
              ElementsAre(Field(&Averager::Objection::why, wire::StallCause::slow_contribution),
                          AllOf(Field(&Averager::Objection::why, wire::StallCause::slow_mean),
                                Field(&Averager::Objection::missing, RangeSet(Range{1, 1})))));
}

TEST_F(TwoAveragers, have_the_lines_for_twice_the_time_it_should_take_and_a_quarter_of_that_before) {
  EXPECT_EQ(Instant{}, a.has_lines_until());
  a.open(kOpened, kFirst);
  ASSERT_TRUE(a.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst, 3)), kOpened - 40s));
  EXPECT_EQ(kOpened + 6s, a.has_lines_until());
  b.open(kOpened, kFirst);
  ASSERT_TRUE(b.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst, 60)), kOpened - 40s));
  EXPECT_EQ(kOpened + 10s, b.has_lines_until());
  b.abandon();
  EXPECT_EQ(Instant{}, b.has_lines_until());
}

TEST_F(TwoAveragers, count_the_ballots_that_count_on_an_own_contribution_beyond_the_cap) {
  Averager capped({.self = kA, .fragments = kVector, .norm_cap = 1});
  capped.open(kOpened, kFirst);
  ASSERT_TRUE(capped.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  contribute(capped, kFirst, of_a);
  while (capped.next_segment(kB)) {
  }
  EXPECT_THAT(capped.take_unfit(kFirst), ElementsAre(Field(&Unfit::why, wire::StallCause::too_large)));
  EXPECT_EQ(1U, capped.ballots_beyond_cap(kFirst));
  EXPECT_EQ(0U, capped.ballots_beyond_cap(kSecond));
}

TEST(AveragerProbe, fills_the_lines_before_the_first_mean_and_ends_with_its_first_segment) {
  Averager a = averager_of(kA, 0);
  EXPECT_THAT(a.begin_probe(kOpened, {{kA, "a"}, {kB, "b"}}), IsEmpty()) << "no round is open";
  Averager b = averager_of(kB, 0);
  b.open(kOpened, kFirst);
  EXPECT_THAT(b.begin_probe(kOpened, {{kA, "a"}, {kB, "b"}}), ElementsAre(kA));
  EXPECT_EQ(kOpened + Probe::kNudge, b.next_step(kOpened));
  EXPECT_TRUE(b.next_padding(kOpened, kA));
  EXPECT_FALSE(b.take_probed());
  b.on_bulk(kOpened, kA, wire::Scatter{{1}, 0, 0, Blob(std::vector<std::byte>(8))});
  EXPECT_TRUE(b.take_probed());
  EXPECT_FALSE(b.next_padding(kOpened + 1ms, kA));
  EXPECT_THAT(b.begin_probe(kOpened, {{kA, "a"}, {kB, "b"}}), IsEmpty()) << "once";
}

TEST(AveragerDeathTest, takes_each_step_and_contribution_once) {
  Averager averager = averager_of(kA);
  EXPECT_DEATH(averager.open(kOpened, {0}), "round > 0");
  averager.open(kOpened, kFirst);
  EXPECT_DEATH(averager.open(kOpened, kFirst), "is_open");
  EXPECT_DEATH(averager.finish(kFirst, {}), "complete");
  ASSERT_TRUE(averager.adopt(kOpened, swarm::shared_plan(plan_of_both(kFirst)), kOpened));
  const wire::Contribution due = averager.due(kFirst).front();
  const std::vector<float> sum = {1, 2, 3, 4};
  averager.contribute(kFirst, due, {sum}, {});
  EXPECT_DEATH(averager.contribute(kFirst, due, {sum}, {}), "contributed");
  EXPECT_DEATH(averager.on_bulk(kOpened, kB, wire::Padding{}), "scatter");
}

}  // namespace
}  // namespace tw::average
