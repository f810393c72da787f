// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/batch_checker.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "sim/checkers/test_story.h"
#include "swarm/leases/batch_choice.h"

namespace tw::sim {
namespace {

Rules rules(bool overlaps = false) {
  Rules rules = kRules;
  rules.batch = {20, 4, false, overlaps, swarm::BatchBounds{20, 400}};
  rules.mode = overlaps ? train::Mode::delayed : train::Mode::sync;
  return rules;
}

/// A round of 20 samples after one that chose them; the next one has 40.
wire::Record chosen(const Judged<ChosenBatches>& j) {
  wire::Record zero = j.story.genesis();
  zero.batch = wire::BatchChoice{.next = 20};
  wire::Record one = j.story.next(zero, {1, 1});
  one.batch = wire::BatchChoice{20, 40, 0.1, 100, 8};
  return one;
}

TEST(ChosenBatches, follow_from_what_the_record_says_was_measured) {
  Judged<ChosenBatches> j(rules());
  j.commit(kAnn, chosen(j));
  EXPECT_TRUE(j.checker.violations().empty());
}

TEST(ChosenBatches, are_recomputed_as_swarm_computes_them) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Prng prng(seed);
    const Rules facts = rules(prng.chance(0.5));
    Judged<ChosenBatches> j(facts);
    wire::Record record = chosen(j);
    record.batch = wire::BatchChoice{20 + 4 * prng.below(90), 0, prng.uniform(), 1 + 200 * prng.uniform(),
                                     4 * prng.below(50)};
    record.batch->next = next_batch_size(*record.batch, facts.batch);
    j.commit(kAnn, record);
    EXPECT_TRUE(j.checker.violations().empty()) << seed << ": " << j.checker.violations().front().message;
  }
}

TEST(ChosenBatches, are_seen_where_they_do_not_follow) {
  for (const std::uint64_t wrong : {36U, 44U}) {
    Judged<ChosenBatches> j(rules());
    wire::Record record = chosen(j);
    record.batch->next = wrong;
    j.commit(kAnn, record);
    EXPECT_EQ(j.checker.violations().size(), 1U);
  }
}

TEST(ChosenBatches, are_those_of_the_record_before) {
  Judged<ChosenBatches> j(rules());
  wire::Record zero = j.story.genesis();
  zero.batch = wire::BatchChoice{.next = 24};
  wire::Record one = chosen(j);
  one.parent = digest_of(zero);
  j.commit(kAnn, zero);
  j.commit(kAnn, one);
  EXPECT_EQ(j.checker.violations().size(), 1U);
}

TEST(ChosenBatches, are_in_no_record_of_a_run_with_a_batch_of_its_own) {
  Judged<ChosenBatches> fixed(kRules), chosen_ones(rules());
  fixed.commit(kAnn, chosen(fixed));
  chosen_ones.commit(kAnn, chosen_ones.story.genesis());
  EXPECT_EQ(fixed.checker.violations().size(), 1U);
  EXPECT_EQ(chosen_ones.checker.violations().size(), 1U);
}

}  // namespace
}  // namespace tw::sim
