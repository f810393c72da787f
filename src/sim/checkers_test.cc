// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers.h"

#include <gtest/gtest.h>

#include "average/reference.h"
#include "sim/trainer.h"
#include "wire/frame.h"

namespace tw {
namespace {

const PeerId kAnn{11}, kBob{12}, kEve{13};

const Rules kRules{.target_batch_size = 20, .microbatch = 4, .codec = Codec::fp16, .geometry = {40, 16}};

/// A history of rounds by Ann and Bob as it should be, for tests to spoil.
struct Story {
  explicit Story(Checker& judge) : checker(judge) {}

  Record genesis() const {
    Record record;
    record.members = {{kAnn, "a"}, {kBob, "b"}};
    record.parameters = {9, 9};
    return record;
  }

  /// Microbatches 0-2 by Ann, 3-4 by Bob.
  Record next(const Record& before, const Digest& parameters) const {
    Record record;
    record.round = before.round + 1;
    record.parent = digest_of(before);
    record.members = before.members;
    record.first_sample = before.samples_total();
    record.samples = 20;
    record.parameters = parameters;
    record.contributors = {{kAnn, 0, 12, RangeSet({0, 3})}, {kBob, 0, 8, RangeSet({3, 2})}};
    const SampleSpan ann{record.first_sample, 12}, bob{record.first_sample + 12, 8};
    const auto first = reference_contribution(parameters, {&ann, 1}, 40);
    const auto second = reference_contribution(parameters, {&bob, 1}, 40);
    const WeightedGradient both[] = {{12, first}, {8, second}};
    record.mean = digest_of(std::span<const float>(reference_mean(Codec::fp16, both, kRules.geometry)));
    return record;
  }

  void commit(PeerId peer, const Record& record) {
    ledger.add(digest_of(record), record);
    checker.on_commit({peer, record, digest_of(record)});
  }

  void apply(PeerId peer, const Record& record, const Digest& parameters, bool restored = false) {
    ledger.add(digest_of(record), record);
    checker.on_applied({peer, record, digest_of(record), parameters, restored});
  }

  void commit_and_apply(PeerId peer, const Record& record, const Digest& parameters) {
    commit(peer, record);
    apply(peer, record, parameters);
  }

  std::string verdict() const {
    return checker.violations().empty() ? "" : checker.violations().front().message;
  }

  Checker& checker;
  Ledger ledger;
};

Survivor finished(PeerId peer) {
  SessionView view;
  view.finished = true;
  return {peer, view};
}

/// The ledger is the story's, so checkers that need one are made with it.
template <class T>
struct Judged {
  Ledger ledger;
  T checker{ledger};
  Story story{checker};

  void commit(PeerId peer, const Record& record) {
    ledger.add(digest_of(record), record);
    story.commit(peer, record);
  }

  void apply(PeerId peer, const Record& record, const Digest& parameters, bool restored = false) {
    ledger.add(digest_of(record), record);
    story.apply(peer, record, parameters, restored);
  }
};

TEST(I1, fires_when_two_peers_leave_a_round_with_different_parameters) {
  Judged<SameParameters> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  j.apply(kAnn, one, {2, 2});
  j.apply(kBob, one, {2, 2});
  EXPECT_EQ(j.story.verdict(), "");
  j.apply(kEve, one, {2, 3}, true);
  EXPECT_NE(j.story.verdict().find("round 1: peer 11"), std::string::npos);
}

TEST(I1, does_not_compare_across_a_marked_fork_but_fires_across_an_unmarked_one) {
  Judged<SameParameters> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  Record marked = one, unmarked = one;
  marked.minority = true;
  unmarked.members.pop_back();
  j.apply(kAnn, one, {2, 2});
  j.apply(kBob, marked, {3, 3});
  EXPECT_EQ(j.story.verdict(), "");
  j.apply(kBob, marked, {3, 4});
  EXPECT_EQ(j.checker.violations().size(), 1U);
  j.apply(kBob, unmarked, {4, 4});
  EXPECT_EQ(j.checker.violations().size(), 2U);
}

TEST(I2, fires_when_a_record_is_applied_that_nobody_committed) {
  Judged<AllOrNone> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  j.apply(kAnn, zero, {1, 1});
  j.apply(kAnn, one, {2, 2});
  EXPECT_NE(j.story.verdict().find("nobody committed"), std::string::npos);
}

TEST(I2, fires_when_a_round_is_left_out_unless_the_state_was_restored) {
  Judged<AllOrNone> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1}), two = j.story.next(one, {2, 2});
  j.commit(kAnn, zero);
  j.commit(kAnn, one);
  j.commit(kAnn, two);
  j.apply(kAnn, zero, {1, 1});
  j.apply(kAnn, two, {3, 3}, true);
  EXPECT_EQ(j.story.verdict(), "");
  j.apply(kBob, zero, {1, 1});
  j.apply(kBob, two, {3, 3});
  EXPECT_NE(j.story.verdict().find("peer 12 applied it without the round before"), std::string::npos);
}

TEST(I2, fires_when_a_member_that_lived_has_not_applied_the_last_round) {
  Judged<AllOrNone> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  for (const PeerId peer : {kAnn, kBob}) {
    j.commit(peer, zero);
    j.apply(peer, zero, {1, 1});
  }
  j.commit(kAnn, one);
  j.apply(kAnn, one, {2, 2});
  const Survivor ann[] = {finished(kAnn), finished(kEve)};
  j.checker.on_end(ann);
  EXPECT_EQ(j.story.verdict(), "");
  const Survivor both[] = {finished(kAnn), finished(kBob)};
  j.checker.on_end(both);
  EXPECT_NE(j.story.verdict().find("peer 12 is a member and lived"), std::string::npos);
}

TEST(I3, accepts_a_whole_round_and_fires_for_each_way_in_which_samples_go_wrong) {
  const auto judge = [](auto&& spoil) {
    ExactSamples checker(kRules);
    Story story(checker);
    Record record = story.next(story.genesis(), {1, 1});
    spoil(record);
    story.commit(kAnn, record);
    return story.verdict();
  };
  EXPECT_EQ(judge([](Record&) {}), "");
  EXPECT_NE(judge([](Record& r) {
              r.contributors[1].microbatches = RangeSet({2, 3});
            }).find("repeats"),
            std::string::npos);
  EXPECT_NE(judge([](Record& r) { r.contributors[1].samples = 7; }).find("weighs 7"), std::string::npos);
  EXPECT_NE(judge([](Record& r) { r.contributors.pop_back(); }).find("instead of all 5"), std::string::npos);
  EXPECT_NE(judge([](Record& r) { r.first_sample = 4; }).find("should be [0, +20)"), std::string::npos);
}

TEST(I3, knows_that_the_last_microbatch_may_be_short) {
  Rules rules = kRules;
  rules.target_batch_size = 18;
  ExactSamples checker(rules);
  Story story(checker);
  Record record = story.next(story.genesis(), {1, 1});
  record.samples = 18;
  record.contributors[1].samples = 6;
  story.commit(kAnn, record);
  EXPECT_EQ(story.verdict(), "");
}

TEST(I4, accepts_the_reference_mean_and_fires_when_one_value_is_stale) {
  ExactMean checker(kRules);
  Story story(checker);
  Record record = story.next(story.genesis(), {1, 1});
  story.commit(kAnn, record);
  EXPECT_EQ(story.verdict(), "");
  record.mean.low ^= 1;
  story.commit(kBob, record);
  EXPECT_NE(story.verdict().find("round 1: the recorded mean is"), std::string::npos);
}

TEST(I4, fires_when_the_recorded_contributors_are_not_those_of_the_mean) {
  ExactMean checker(kRules);
  Story story(checker);
  Record record = story.next(story.genesis(), {1, 1});
  record.contributors = {{kAnn, 0, 8, RangeSet({0, 2})}, {kBob, 0, 12, RangeSet({2, 3})}};
  story.commit(kAnn, record);
  EXPECT_EQ(checker.violations().size(), 1U);
}

TEST(I6, fires_when_a_contributor_never_held_the_state_of_the_round) {
  KnownState checker;
  Story story(checker);
  const Record one = story.next(story.genesis(), {1, 1}), two = story.next(one, {2, 2});
  story.commit(kAnn, one);
  story.apply(kAnn, one, {2, 2});
  story.apply(kBob, one, {2, 3});
  EXPECT_EQ(story.verdict(), "");
  story.commit(kAnn, two);
  EXPECT_NE(story.verdict().find("peer 12 contributed"), std::string::npos);
  EXPECT_EQ(checker.violations().size(), 1U);
}

TEST(I8, fires_for_two_histories_unless_one_is_marked) {
  Judged<OneHistory> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  Record marked = one;
  marked.minority = true;
  marked.members.pop_back();
  const Record after_marked = j.story.next(marked, {2, 2}), two = j.story.next(one, {2, 2});
  for (const Record& record : {zero, one, marked, after_marked, two, two}) j.commit(kAnn, record);
  EXPECT_EQ(j.story.verdict(), "");
  Record other = j.story.next(one, {2, 2});
  other.members.pop_back();
  j.commit(kBob, other);
  ASSERT_EQ(j.checker.violations().size(), 1U) << "against two, not against the branch behind the mark";
  EXPECT_NE(j.story.verdict().find("round 2: peer 12"), std::string::npos);
}

TEST(L1, names_what_each_session_waits_for_when_the_run_does_not_end) {
  Judged<RunEnds> j;
  SessionView stuck;
  stuck.round = 7;
  stuck.waiting = "peer 3: no vote";
  const Survivor survivors[] = {finished(kAnn), {kBob, stuck}};
  j.checker.on_end(survivors);
  ASSERT_EQ(j.checker.violations().size(), 1U);
  EXPECT_EQ(j.story.verdict(), "peer 12 has not come beyond round 7; it waits for: peer 3: no vote");
}

TEST(L1, fires_for_members_of_the_last_record_alone_once_the_run_is_over) {
  Judged<RunEnds> j;
  Record last = j.story.next(j.story.genesis(), {1, 1});
  last.last = true;
  j.commit(kAnn, last);
  const Survivor survivors[] = {finished(kAnn), {kBob, {}}, {kEve, {}}};
  j.checker.on_end(survivors);
  ASSERT_EQ(j.checker.violations().size(), 1U);
  EXPECT_NE(j.story.verdict().find("peer 12"), std::string::npos);
}

TEST(Failure, fires_unless_the_session_came_after_the_end_of_the_run) {
  Judged<NobodyFails> j;
  SessionView failed;
  failed.failure = "nobody is there";
  j.checker.on_look({kEve, failed});
  EXPECT_EQ(j.story.verdict(), "peer 13 at round 0: nobody is there");
  Record last = j.story.next(j.story.genesis(), {1, 1});
  last.last = true;
  j.commit(kAnn, last);
  j.checker.on_look({kEve, failed});
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

TEST(L3, fires_when_a_wait_of_more_than_five_seconds_names_nobody) {
  WaitsAreNamed checker;
  SessionView named, silent;
  named.waiting = "peer 3: silent";
  checker.on_look({kAnn, named, std::chrono::seconds(60)});
  checker.on_look({kAnn, silent, std::chrono::seconds(5)});
  EXPECT_TRUE(checker.violations().empty());
  checker.on_look({kAnn, silent, std::chrono::milliseconds(5001)});
  checker.on_look({kAnn, silent, std::chrono::milliseconds(5201)});
  EXPECT_EQ(checker.violations().size(), 1U);
}

}  // namespace
}  // namespace tw
