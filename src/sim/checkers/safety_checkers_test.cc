// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/safety_checkers.h"

#include <gtest/gtest.h>

#include <functional>

#include "sim/checkers/test_story.h"

namespace tw::sim {
namespace {

using wire::Record;

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

TEST(I1, excuses_a_peer_with_a_fault_of_its_memory_until_it_takes_the_state_of_one_without) {
  Judged<SameParameters> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1}), two = j.story.next(one, {2, 2});
  j.checker.on_strike({FaultKind::memory_flip, {kBob}, {}, {}});
  j.apply(kBob, one, {6, 6});
  j.apply(kAnn, one, {2, 2});
  j.apply(kEve, one, {6, 6}, true);  // of Bob's
  EXPECT_EQ(j.story.verdict(), "");
  j.apply(kBob, one, {2, 2}, true);
  j.apply(kAnn, two, {3, 3});
  j.apply(kBob, two, {3, 4});
  EXPECT_NE(j.story.verdict().find("round 2: peer 11"), std::string::npos);
}

TEST(I1, excuses_a_peer_that_takes_the_state_of_one_whose_memory_has_just_changed) {
  Judged<SameParameters> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1}), two = j.story.next(one, {2, 2});
  j.apply(kAnn, one, {2, 2});
  j.apply(kBob, one, {2, 2});
  j.checker.on_strike({FaultKind::memory_flip, {kBob}, {}, {}, {6, 6}});
  j.apply(kEve, one, {6, 6}, true);  // of Bob's
  j.apply(kAnn, two, {3, 3});
  j.apply(kEve, two, {7, 7});
  EXPECT_EQ(j.story.verdict(), "");
  j.apply(kEve, two, {3, 3}, true);
  j.apply(kEve, j.story.next(two, {3, 3}), {5, 5});
  j.apply(kAnn, j.story.next(two, {3, 3}), {4, 4});
  EXPECT_NE(j.story.verdict().find("round 3: peer 13"), std::string::npos);
}

TEST(I1, fires_when_a_peer_takes_a_state_that_no_peer_with_a_fault_of_its_memory_had) {
  Judged<SameParameters> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  j.checker.on_strike({FaultKind::memory_flip, {kBob}, {}, {}});
  j.apply(kAnn, one, {2, 2});
  j.apply(kBob, one, {6, 6});
  j.apply(kEve, one, {7, 7}, true);
  EXPECT_NE(j.story.verdict().find("peer 13"), std::string::npos);
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
  // L1 judges the peers that are not at its end.
  const Survivor ann[] = {finished(kAnn), finished(kEve), {kBob, {}}, twin};
  j.checker.on_end(ann);
  EXPECT_EQ(j.story.verdict(), "");
  const Survivor both[] = {finished(kAnn), finished(kBob)};
  j.checker.on_end(both);
  EXPECT_NE(j.story.verdict().find("peer 12 is a member and lived"), std::string::npos);
}

TEST(I2, excuses_a_peer_that_left_from_a_round_which_only_the_dead_knew_to_be_decided) {
  for (const bool complete : {false, true}) {
    Judged<AllOrNone> j;
    const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
    for (const PeerId peer : {kAnn, kBob}) {
      j.commit(peer, zero);
      j.apply(peer, zero, {1, 1});
    }
    j.commit(kAnn, one);
    j.apply(kAnn, one, {2, 2});
    Survivor bob = finished(kBob);
    bob.view.ending = complete ? train::Ending::complete : train::Ending::left;
    j.checker.on_end({&bob, 1});
    EXPECT_EQ(j.story.verdict().empty(), !complete) << "it says that it has the whole run";
  }
}

const world::Event kLeftToTheNext = {.round = 1, .why = "3-4", .fact = event::Reissue{.next_round = true}};

std::string judge_samples(const Rules& rules, const std::function<void(Record&)>& spoil) {
  Judged<ExactSamples> j(rules);
  j.commit(kAnn, j.story.genesis());
  Record record = j.story.next(j.story.genesis(), {1, 1});
  spoil(record);
  j.checker.on_event(kAnn, kLeftToTheNext);
  j.commit(kAnn, record);
  return j.story.verdict();
}

TEST(I3, accepts_a_whole_round_and_fires_for_each_way_in_which_samples_go_wrong) {
  const auto says = [](const std::string& words, const std::function<void(Record&)>& spoil) {
    EXPECT_NE(judge_samples(kRules, spoil).find(words), std::string::npos) << words;
  };
  EXPECT_EQ(judge_samples(kRules, [](Record&) {}), "");
  says("repeats", [](Record& r) { r.contributors[1].microbatches = RangeSet({2, 3}); });
  says("weighs 7", [](Record& r) { r.contributors[1].samples = 7; });
  says("weights add up to 20", [](Record& r) { r.samples = 24; });
  says("begins with samples [], then 4; should with [], then 0", [](Record& r) { r.first_sample = 4; });
  says("begins with samples [0-3], then 4", [](Record& r) {
    r.carried = RangeSet({0, 4});
    r.first_sample = 4;
  });
  says("weighs 8 samples", [](Record& r) { r.contributors[1].microbatches = RangeSet({3, 1}); });
}

TEST(I3, knows_that_the_last_microbatch_may_be_short) {
  Rules rules = kRules;
  rules.batch.target_batch_size = 18;
  const auto shorter = [](Record& r) {
    r.samples = 18;
    r.contributors[1].samples = 6;
  };
  EXPECT_EQ(judge_samples(rules, shorter), "");
}

TEST(I3, wants_what_a_round_leaves_over_at_the_head_of_the_next_one) {
  enum class Told { nobody, leader, twin };
  const auto judge = [](bool carries, bool last, Told told = Told::leader) {
    Judged<ExactSamples> j;
    if (told == Told::leader) j.checker.on_event(kAnn, kLeftToTheNext);
    if (told == Told::twin) j.checker.on_twin_event(kAnn, kLeftToTheNext);
    Record one = j.story.next(j.story.genesis(), {1, 1});
    one.contributors.pop_back();
    one.samples = 12;
    one.last = last;
    Record two = j.story.next(one, {2, 2});
    two.first_sample = 20;
    if (carries) two.carried = RangeSet({12, 8});
    for (const Record& record : {j.story.genesis(), one, two}) j.commit(kAnn, record);
    return j.story.verdict();
  };
  EXPECT_EQ(judge(true, false), "");
  EXPECT_NE(judge(false, false).find("should with [12-19], then 20"), std::string::npos);
  EXPECT_NE(judge(true, true).find("instead of all 5"), std::string::npos) << "there is no next one";
  EXPECT_NE(judge(true, false, Told::nobody).find("instead of all 5"), std::string::npos)
      << "nobody was lost";
  EXPECT_EQ(judge(true, false, Told::twin), "") << "a second process of its id leads";
}

TEST(I3, wants_skipped_samples_to_be_broken_and_told_by_their_peer_and_used) {
  Rules rules = kRules;
  rules.broken = [](std::uint64_t sample) { return sample == 5 || sample == 40; };
  const auto judge = [&](std::initializer_list<double> skipped, bool restarts = false) {
    Judged<ExactSamples> j(rules);
    j.commit(kAnn, j.story.genesis());
    if (restarts) j.checker.on_event(kAnn, {.fact = event::Start{}});
    for (const double sample : skipped)
      j.checker.on_event(kAnn, {.round = 1, .fact = event::Skip{.sample = sample}});
    Record record = j.story.next(j.story.genesis(), {1, 1});
    record.last = true;
    j.commit(kAnn, record);
    j.checker.on_end({});
    return j.story.verdict();
  };
  EXPECT_EQ(judge({5}), "");
  EXPECT_EQ(judge({5, 5}), "") << "told twice, it is skipped once";
  EXPECT_EQ(judge({}), "round 1: peer 11 did not say that it skipped sample 5");
  EXPECT_EQ(judge({}, true), "") << "another process did not compute it";
  EXPECT_EQ(judge({5, 6}), "round 1: peer 11 skipped sample 6, which is not broken");
  EXPECT_EQ(judge({5, 40}), "sample 40 was skipped, but no record has it");
}

TEST(I3, wants_whole_batches_where_the_run_does) {
  Rules rules = kRules;
  rules.batch.exact_batches = true;
  EXPECT_EQ(judge_samples(rules, [](Record&) {}), "");
  const auto less = [](Record& r) {
    r.contributors.pop_back();
    r.samples = 12;
  };
  EXPECT_EQ(judge_samples(kRules, less), "");
  EXPECT_NE(judge_samples(rules, less).find("instead of all 5"), std::string::npos);
}

TEST(I3, fires_when_more_than_half_of_a_batch_is_left_over) {
  const auto less = [](Record& r) {
    r.contributors.erase(r.contributors.begin());
    r.samples = 8;
  };
  EXPECT_NE(judge_samples(kRules, less).find("microbatches 3-4 instead of all 5"), std::string::npos);
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
    const Record one = j.story.next(zero, {1, 1}, true);
    j.commit(kAnn, zero);
    j.look({kAnn}, 100, 100 + waited_s + 0.5);
    j.commit(kAnn, one);
    EXPECT_EQ(j.checker.violations().size(), waited_s == 2 ? 1U : 0U);
  }
}

TEST(I8, counts_a_jump_of_a_clock_as_a_step_of_the_patience_and_not_as_an_hour) {
  for (const int jumps : {1, 2}) {
    Rules rules = kRules;
    rules.patience = std::chrono::seconds(5);
    Judged<OneHistory> j(rules);
    const Record zero = j.story.genesis();
    const Record one = j.story.next(zero, {1, 1}, true);
    j.commit(kAnn, zero);
    for (int i = 0; i < jumps; ++i) j.checker.on_strike({FaultKind::clock_jump, {kAnn}, {}});
    j.commit(kAnn, one);
    EXPECT_EQ(j.checker.violations().size(), jumps == 1 ? 1U : 0U);
  }
}

TEST(I8, fires_for_a_history_given_up_for_one_that_nobody_had_a_part_in) {
  Judged<OneHistory> j;
  Record lone = j.story.genesis();
  lone.members = {wire::Member{kAnn}};
  const Record longer = j.story.next(lone, {3, 3});
  Record company = j.story.next(lone, {1, 1});
  company.members = {wire::Member{kAnn}, wire::Member{kBob}};
  j.apply(kAnn, company, {2, 2});
  j.apply(kBob, company, {2, 2});
  j.checker.on_event(kBob, {.fact = event::Start{}});
  j.apply(kBob, longer, {1, 1}, true);
  EXPECT_EQ(j.story.verdict(), "") << "another process, which found nobody";
  j.apply(kAnn, longer, {1, 1}, true);
  EXPECT_NE(j.story.verdict().find("round 1: peer 11 gave up a history"), std::string::npos);
}

TEST(I8, fires_for_two_histories_unless_one_is_marked) {
  Judged<OneHistory> j;
  const Record zero = j.story.genesis(), one = j.story.next(zero, {1, 1});
  Record marked = j.story.next(zero, {1, 1}, true);
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

/// Ann and Bob decide round 1 together, and round 2; Bob alone has gone on from round 0 for five rounds.
struct Split {
  Split() {
    zero = j.story.genesis();
    const Record one = j.story.next(zero, {1, 1});
    together = j.story.next(one, {2, 2});
    for (const Record& record : {zero, one, together}) j.commit(kAnn, record);
    alone = j.story.next(zero, {3, 3}, true);
    alone.members = {{kBob, "b"}};
    swarm::continue_lineage(alone, zero);
    j.commit(kBob, alone);
    for (std::uint64_t round = 2; round <= 5; ++round) {
      alone = j.story.next(alone, {round, 9});
      j.commit(kBob, alone);
    }
  }

  Judged<OneHistory> j;
  Record zero, together, alone;
};

TEST(I8, fires_when_somebody_gives_up_a_history_of_a_majority_for_a_longer_one_of_a_few) {
  Split split;
  split.j.apply(kBob, split.alone, {1, 1});
  split.j.apply(kBob, split.together, {2, 2}, true);
  split.j.apply(kAnn, split.zero, {2, 2});
  split.j.apply(kAnn, split.together, {2, 2});
  EXPECT_EQ(split.j.story.verdict(), "") << "two rounds of both go before five of one";
  split.j.apply(kAnn, split.alone, {1, 1}, true);
  EXPECT_NE(
      split.j.story.verdict().find("peer 11 gave up a history of 40 samples, of which a majority decided "
                                   "40, for one of 100 and 0"),
      std::string::npos)
      << split.j.story.verdict();
}

TEST(I8, knows_a_process_that_was_started_again_from_one_that_gives_up_its_history) {
  Split split;
  split.j.apply(kAnn, split.together, {2, 2});
  split.j.checker.on_event(kAnn, {.fact = event::Start{}});
  split.j.apply(kAnn, split.alone, {1, 1}, true);
  EXPECT_EQ(split.j.story.verdict(), "");
}

TEST(I8, fires_when_a_record_counts_as_a_majoritys_what_a_few_decided) {
  Split split;
  Record boasts = split.j.story.next(split.alone, {6, 6});
  boasts.majority_samples = 20;
  split.j.commit(kBob, boasts);
  EXPECT_NE(split.j.story.verdict().find("says that a majority decided 20 samples, it was 0"),
            std::string::npos);
}

TEST(I8, lets_a_history_count_again_once_most_of_those_that_it_lost_are_back) {
  Split split;
  Record back = split.j.story.next(split.alone, {6, 6});
  back.members = split.zero.members;
  swarm::continue_lineage(back, split.alone);
  const Record after = split.j.story.next(back, {7, 7});
  EXPECT_EQ(after.majority_samples, 20U);
  split.j.commit(kBob, back);
  split.j.commit(kBob, after);
  EXPECT_EQ(split.j.story.verdict(), "");
}

}  // namespace
}  // namespace tw::sim
