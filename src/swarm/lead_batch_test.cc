// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "swarm/ballots/validation.h"
#include "swarm/test_council.h"

/// The leader chooses the samples of the next round (training.target_batch_size: auto).
namespace tw::swarm {
namespace {

Council::Setup chosen(Duration shortest_reduce, bool overlap = false) {
  Council::Setup setup;
  setup.lease = {
      .target_batch_size = 64, .microbatch = 4, .overlap = overlap, .chosen = BatchBounds{16, 4096}};
  setup.shortest_reduce = shortest_reduce;
  return setup;
}

TEST(LeadBatch, chooses_the_next_one_at_the_call_from_what_it_has_measured) {
  Council council(chosen(340ms));
  const wire::Record& draft = council.work_until_called().draft;
  ASSERT_TRUE(draft.batch.has_value());
  EXPECT_EQ(draft.batch->samples, 64U);
  EXPECT_DOUBLE_EQ(draft.batch->samples_per_s, 300);
  EXPECT_DOUBLE_EQ(draft.batch->averaging_s, 0.3) << "less 4 samples, which take 0.04 s";
  EXPECT_EQ(draft.batch->at_once, 12U);
  EXPECT_EQ(draft.batch->next, 128U) << "on the way to 1710";
  EXPECT_EQ(fault_of(draft, council.head, chosen(340ms).lease), "");
}

TEST(LeadBatch, takes_bandwidth_for_the_least_that_averaging_takes) {
  Council::Setup setup = chosen(50ms);
  setup.division.bytes = {.contribution = 1'000'000, .mean = 1'000'000};
  Council council(setup);
  for (const std::uint64_t id : {1, 2, 3}) council.lines[id] = {1e6, 1e6, {}};
  const wire::Plan& plan = council.work_until_called();
  EXPECT_DOUBLE_EQ(plan.draft.batch->averaging_s, council.lead.least_reduce_s(plan));
  EXPECT_GT(plan.draft.batch->averaging_s, 1.0);
}

TEST(LeadBatch, leaves_it_as_it_is_before_anything_was_averaged) {
  Council council(chosen({}));
  EXPECT_EQ(council.work_until_called().draft.batch->next, 64U);
}

// Those that were called compute for the batch of the first plan already.
TEST(LeadBatch, keeps_its_choice_in_a_later_plan_of_the_round) {
  for (const bool overlap : {false, true}) {
    Council council(chosen(240ms, overlap));
    const wire::Record first = council.work_until_called().draft;
    council.lose(3);
    ASSERT_GT(council.last_plan.version, 1U);
    EXPECT_LT(council.last_plan.draft.members.size(), first.members.size());
    EXPECT_EQ(council.last_plan.draft.batch, first.batch);
  }
}

TEST(LeadBatch, leases_ahead_what_the_next_round_has) {
  Council council(chosen(41ms, true));
  const wire::Record& draft = council.work_until_called().draft;
  ASSERT_EQ(draft.batch->next, 32U);
  RangeSet ahead;
  for (const wire::Contribution& c : draft.ahead) ahead.add(c.microbatches);
  EXPECT_FALSE(ahead.empty());
  EXPECT_TRUE(RangeSet(Range{0, 8}).contains(ahead)) << to_string(ahead);
}

}  // namespace
}  // namespace tw::swarm
