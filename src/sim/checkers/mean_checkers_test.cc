// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/mean_checkers.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/checkers/test_story.h"

namespace tw::sim {
namespace {

using wire::Record;

TEST(I4, accepts_the_reference_mean_and_fires_when_one_value_is_stale) {
  Judged<ExactMean> j;
  Record record = j.story.next(j.story.genesis(), {1, 1});
  j.story.commit(kAnn, record);
  EXPECT_EQ(j.story.verdict(), "");
  record.mean.low ^= 1;
  j.story.commit(kBob, record);
  EXPECT_NE(j.story.verdict().find("round 1: the recorded mean is"), std::string::npos);
}

TEST(I4, fires_when_the_recorded_contributors_are_not_those_of_the_mean) {
  Judged<ExactMean> j;
  Record record = j.story.next(j.story.genesis(), {1, 1});
  record.contributors = {{kAnn, 0, 8, RangeSet({0, 2})}, {kBob, 0, 12, RangeSet({2, 3})}};
  j.story.commit(kAnn, record);
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

/// As if some segments of Bob's contribution to this record had come with the other sign.
Record negated(Record record, const std::set<std::uint64_t>& segments) {
  const train::SampleSpan ann{record.first_sample, 12}, bob{record.first_sample + 12, 8};
  const auto first = reference_contribution(record.parameters, {&ann, 1}, 40);
  auto second = reference_contribution(record.parameters, {&bob, 1}, 40);
  for (const std::uint64_t segment : segments) {
    for (std::uint64_t i = 0; i < kRules.fragments.largest().size(segment); ++i) {
      float& value = second[kRules.fragments.largest().first(segment) + i];
      value = -value;
    }
  }
  const average::WeightedGradient both[] = {{12, first}, {8, second}};
  record.mean = digest_of_mean(reference_mean(codec::Codec::fp16, both, kRules.fragments.largest()),
                               kRules.fragments.largest());
  return record;
}

TEST(I4, finds_the_signs_of_a_peer_that_sends_negated_values_and_fires_for_anybody_else) {
  Judged<ExactMean> j;
  const Record one = j.story.next(j.story.genesis(), {1, 1});
  j.checker.on_strike({FaultKind::send_negated, {kBob}, {}});
  j.commit(kAnn, negated(one, {0, 2}));
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(), "");
  Record other = one;
  other.mean.low ^= 1;
  j.commit(kAnn, other);
  EXPECT_NE(j.story.verdict().find("none with other signs"), std::string::npos);

  Judged<ExactMean> honest;
  honest.checker.on_strike({FaultKind::send_negated, {kAnn}, {}});
  honest.commit(kAnn, negated(one, {0, 2}));
  EXPECT_EQ(honest.checker.violations().size(), 1U);
}

TEST(I4, trusts_a_peer_again_in_the_second_round_after_faults_are_over) {
  Judged<ExactMean> j;
  const Record one = j.story.next(j.story.genesis(), {1, 1}), two = j.story.next(one, {2, 2});
  j.checker.on_strike({FaultKind::send_negated, {kBob}, {}});
  j.checker.on_calm({});
  j.commit(kAnn, negated(one, {1}));
  EXPECT_EQ(j.story.verdict(), "");
  j.commit(kAnn, negated(two, {1}));
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

TEST(I4, cannot_judge_what_was_named_as_of_the_next_round_until_that_is_over) {
  Judged<ExactMean> j;
  Record one = j.story.next(j.story.genesis(), {1, 1}), two = j.story.next(one, {2, 2}),
         three = j.story.next(two, {3, 3});
  j.checker.on_strike({FaultKind::wrong_round, {kBob}, {}});
  j.checker.on_calm({});
  for (Record* record : {&one, &two}) {
    record->mean.low ^= 1;
    j.commit(kAnn, *record);
  }
  EXPECT_EQ(j.story.verdict(), "");
  three.mean.low ^= 1;
  j.commit(kAnn, three);
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

TEST(I4, fires_for_a_contribution_without_weight) {
  Judged<ExactMean> j;
  Record one = j.story.next(j.story.genesis(), {1, 1});
  one.contributors[1].samples = 0;
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(), "round 1: a contribution has no weight");
}

TEST(I4, cannot_judge_huge_values_unless_a_cap_refuses_them) {
  Rules capped = kRules;
  capped.norm_cap = 1000;
  for (const Rules& rules : {kRules, capped}) {
    Judged<ExactMean> j(rules);
    Record one = j.story.next(j.story.genesis(), {1, 1});
    one.mean.low ^= 1;
    j.checker.on_strike({FaultKind::send_huge, {kBob}, {}});
    j.commit(kAnn, one);
    EXPECT_EQ(j.checker.violations().size(), rules.norm_cap == 0 ? 0U : 1U);
  }
}

TEST(I5, fires_for_a_contributor_that_nobody_knows_and_for_a_slot_that_counts_twice) {
  Judged<OnlySoundInput> j;
  const Record zero = j.story.genesis();
  Record one = j.story.next(zero, {1, 1});
  j.commit(kAnn, zero);
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(), "");
  one.contributors[1].peer = kEve;
  one.members.push_back({kEve, "e"});
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(), "") << "a joiner that came to the head while the round was under way";
  one.members.pop_back();
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(), "round 1: peer 13 contributed, but nobody knows it");
  one.contributors[1].peer = kAnn;
  j.commit(kAnn, one);
  ASSERT_EQ(j.checker.violations().size(), 2U);
  EXPECT_EQ(j.checker.violations()[1].message, "round 1: contribution 11/0 counts twice");
}

TEST(I5, fires_when_the_mean_is_not_that_of_what_a_hostile_contributor_should_have_sent) {
  Judged<OnlySoundInput> j;
  Record one = j.story.next(j.story.genesis(), {1, 1});
  j.checker.on_strike({FaultKind::send_nan, {kBob}, {}});
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(), "");
  one.mean.low ^= 1;
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(),
            "round 1: something is in the mean that had to be refused, of peers 12 (send_nan)");
}

TEST(I5, leaves_to_I4_what_no_receiver_can_know_and_means_without_the_hostile_peer) {
  for (const FaultKind kind : {FaultKind::send_nan, FaultKind::send_negated}) {
    Judged<OnlySoundInput> j;
    Record one = j.story.next(j.story.genesis(), {1, 1});
    one.mean.low ^= 1;
    j.checker.on_strike({FaultKind::send_nan, {kEve}, {}});
    j.checker.on_strike({kind, {kBob}, {}});
    if (kind == FaultKind::send_negated) j.checker.on_strike({FaultKind::send_nan, {kBob}, {}});
    if (kind == FaultKind::send_nan) one.contributors.pop_back();
    j.commit(kAnn, one);
    EXPECT_EQ(j.story.verdict(), "") << name_of(kind);
  }
}

TEST(I5, fires_when_the_mean_is_longer_than_the_cap) {
  for (const double cap : {1000.0, 10.0}) {
    Rules rules = kRules;
    rules.norm_cap = cap;
    Judged<OnlySoundInput> j(rules);
    j.commit(kAnn, j.story.next(j.story.genesis(), {1, 1}));
    EXPECT_EQ(j.checker.violations().size(), cap == 10.0 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace tw::sim
