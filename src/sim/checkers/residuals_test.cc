// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/residuals.h"

#include <gtest/gtest.h>

#include "average/reduction/mean_digest.h"
#include "sim/checkers/mean_checkers.h"
#include "sim/checkers/test_story.h"

namespace tw::sim {
namespace {

Rules feeding_back() {
  Rules rules = kRules;
  rules.codec = codec::Codec::int4;
  rules.error_feedback = true;
  return rules;
}

const Rules kFeedingBack = feeding_back();

using Values = std::vector<float>;

Values sum_of(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Values loss(const wire::Contribution& c, const Values& sum) {
  return reference_loss(kFeedingBack.codec, {c.samples, sum}, kFeedingBack.fragments.largest());
}

/// Two rounds by Ann and Bob, who both went through the first.
struct TwoRounds {
  explicit TwoRounds(const Story& story) : zero(story.genesis()), one(story.next(zero, {1, 1})) {
    for (const wire::Contribution& c : one.contributors)
      carried.push_back(loss(c, honest_sum(one, c, kFeedingBack)));
    set_mean(one, false);
    two = story.next(one, {2, 2});
    set_mean(two, true);
  }

  void set_mean(wire::Record& record, bool carries) const {
    std::vector<Values> sums;
    std::vector<average::WeightedGradient> all;
    for (std::size_t i = 0; i < record.contributors.size(); ++i) {
      sums.push_back(honest_sum(record, record.contributors[i], kFeedingBack));
      if (carries) sums.back() = sum_of(sums.back(), carried[i]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) all.push_back({record.contributors[i].samples, sums[i]});
    record.mean = digest_of_mean(reference_mean(kFeedingBack.codec, all, kFeedingBack.fragments.largest()),
                                 kFeedingBack.fragments.largest());
  }

  wire::Record zero, one, two;
  std::vector<Values> carried;  ///< by Ann, by Bob after the first round
};

template <class T>
void go_through(Judged<T>& j, const wire::Record& record) {
  for (const PeerId peer : {kAnn, kBob}) {
    j.commit(peer, record);
    j.apply(peer, record, {record.round, 7});
  }
}

template <class T>
std::size_t complaints_about(const wire::Record& second, bool bob_begins_again, const TwoRounds& rounds) {
  Judged<T> j(kFeedingBack);
  // I5 looks at means that somebody was struck for.
  j.checker.on_strike({FaultKind::send_nan, {kAnn}, {}});
  go_through(j, rounds.zero);
  go_through(j, rounds.one);
  if (bob_begins_again) {
    j.checker.on_event(kBob, world::Event{.round = 1, .fact = event::Restore{}});
    j.apply(kBob, rounds.one, {1, 7}, true);
  }
  j.commit(kAnn, second);
  return j.checker.violations().size();
}

TEST(Residuals, are_in_the_mean_of_the_next_round) {
  Judged<ExactMean> any;
  const TwoRounds rounds(any.story);
  EXPECT_EQ(complaints_about<ExactMean>(rounds.two, false, rounds), 0U);
  EXPECT_EQ(complaints_about<OnlySoundInput>(rounds.two, false, rounds), 0U);
  wire::Record without = rounds.two;
  rounds.set_mean(without, false);
  EXPECT_EQ(complaints_about<ExactMean>(without, false, rounds), 1U);
  EXPECT_EQ(complaints_about<OnlySoundInput>(without, false, rounds), 1U);
}

TEST(Residuals, may_be_missing_where_the_state_of_others_was_taken) {
  Judged<ExactMean> any;
  TwoRounds rounds(any.story);
  EXPECT_EQ(complaints_about<ExactMean>(rounds.two, true, rounds), 0U) << "sent before it took the state";
  rounds.carried[1].assign(rounds.carried[1].size(), 0.0F);
  rounds.set_mean(rounds.two, true);
  EXPECT_EQ(complaints_about<ExactMean>(rounds.two, true, rounds), 0U);
  EXPECT_EQ(complaints_about<ExactMean>(rounds.two, false, rounds), 1U);
}

TEST(Residuals, of_a_twin_are_not_known) {
  Judged<ExactMean> any;
  const TwoRounds rounds(any.story);
  for (const FaultKind kind : {FaultKind::twin, FaultKind::stop}) {
    Residuals residuals(kFeedingBack);
    residuals.on_strike({kind, {kBob}, {}});
    EXPECT_EQ(residuals.knows(rounds.two), kind != FaultKind::twin);
    wire::Record without = rounds.two;
    without.contributors.pop_back();
    EXPECT_TRUE(residuals.knows(without));
  }
}

TEST(Residuals, stay_while_the_peer_contributes_nothing) {
  Judged<ExactMean> any;
  const TwoRounds rounds(any.story);
  Residuals residuals(kFeedingBack);
  for (const wire::Record* record : {&rounds.zero, &rounds.one})
    residuals.on_commit({kBob, *record, digest_of(*record)});
  wire::Record two = rounds.two;
  two.contributors.pop_back();
  residuals.on_commit({kBob, two, digest_of(two)});
  wire::Record three = any.story.next(two, {3, 3});
  const auto sums = residuals.honest_sums(three);
  ASSERT_EQ(sums.size(), 1U);
  const wire::Contribution& bobs = three.contributors[1];
  EXPECT_EQ(sums[0][1], sum_of(honest_sum(three, bobs, kFeedingBack), rounds.carried[1]));
  three.contributors[1].slot = 1;
  EXPECT_EQ(residuals.honest_sums(three)[0][1], honest_sum(three, bobs, kFeedingBack)) << "not the carrier";
}

}  // namespace
}  // namespace tw::sim
