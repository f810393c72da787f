// SPDX-License-Identifier: Apache-2.0
#include "sim/safety_checkers.h"

#include <gtest/gtest.h>

#include "sim/test_story.h"

namespace tw {
namespace {

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
  Survivor twin = finished(kBob);
  twin.incarnation = 7;
  // Of who is not at its end L1 tells.
  const Survivor ann[] = {finished(kAnn), finished(kEve), {kBob, {}}, twin};
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
  for (const auto spoil : {+[](Record& r) { r.first_sample = 4; }, +[](Record& r) { r.samples = 24; },
                           +[](Record& r) {
                             r.samples = 18;
                             r.contributors[1].samples = 6;
                           }}) {
    EXPECT_NE(judge(spoil).find("should be [0, +20)"), std::string::npos);
  }
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

TEST(I6, does_not_know_what_a_twin_holds_but_judges_who_was_struck_by_anything_else) {
  for (const FaultKind kind : {FaultKind::twin, FaultKind::stop}) {
    KnownState checker;
    Story story(checker);
    const Record one = story.next(story.genesis(), {1, 1}), two = story.next(one, {2, 2});
    checker.on_strike({kind, {kBob}, {}});
    story.apply(kAnn, one, {2, 2});
    story.commit(kAnn, two);
    EXPECT_EQ(checker.violations().size(), kind == FaultKind::twin ? 0U : 1U);
  }
}

TEST(I8, fires_when_a_minority_does_not_wait_its_patience) {
  for (const int waited_s : {4, 2}) {
    Rules rules = kRules;
    rules.patience = std::chrono::seconds(5);
    Judged<OneHistory> j(rules);
    j.look({kAnn}, 100, 100);
    const Record zero = j.story.genesis();
    Record one = j.story.next(zero, {1, 1});
    one.minority = true;
    j.commit(kAnn, zero);
    j.look({kAnn}, 100, 100 + waited_s + 0.5);
    j.commit(kAnn, one);
    EXPECT_EQ(j.checker.violations().size(), waited_s == 2 ? 1U : 0U);
  }
}

TEST(I8, does_not_know_how_long_a_peer_waited_whose_clock_jumped) {
  Rules rules = kRules;
  rules.patience = std::chrono::seconds(5);
  Judged<OneHistory> j(rules);
  const Record zero = j.story.genesis();
  Record one = j.story.next(zero, {1, 1});
  one.minority = true;
  j.commit(kAnn, zero);
  j.checker.on_strike({FaultKind::clock_jump, {kAnn}, {}});
  j.commit(kAnn, one);
  EXPECT_EQ(j.story.verdict(), "");
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

}  // namespace
}  // namespace tw
