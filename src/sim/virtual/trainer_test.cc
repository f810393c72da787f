// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tw::sim {
namespace {

swarm::WorkItem item_of(std::uint64_t first, std::uint64_t count) {
  return {.samples = RangeSet(Range{first, count})};
}

TEST(SyntheticTrainer, agrees_with_its_reference_however_the_samples_are_cut) {
  SyntheticTrainer trainer({.parameters = 77, .seed = 3});
  std::vector<float> parameters(77);
  trainer.initial_parameters(parameters);
  std::vector<float> once(77), pieces(77);
  trainer.work(parameters, item_of(100, 30), once);
  trainer.work(parameters, item_of(117, 13), pieces);
  trainer.work(parameters, item_of(100, 17), pieces);
  EXPECT_EQ(once, pieces);
  const train::SampleSpan spans[] = {{100, 10}, {110, 20}};
  EXPECT_EQ(once, reference_contribution(digest_of_parameters(parameters), spans, 77));
}

TEST(SyntheticTrainer, gives_small_integers_that_change_with_parameters_and_sample) {
  std::set<int> values;
  int same = 0;
  for (std::uint64_t j = 0; j < 10'000; ++j) {
    const int value = synthetic_gradient({1, 2}, 5, j);
    values.insert(value);
    same += value == synthetic_gradient({1, 2}, 6, j) ? 1 : 0;
    same += value == synthetic_gradient({1, 3}, 5, j) ? 1 : 0;
  }
  EXPECT_EQ(*values.begin(), -128);
  EXPECT_EQ(*values.rbegin(), 127);
  EXPECT_LT(same, 200) << "two of 256";
}

TEST(SyntheticTrainer, flips_one_bit_of_the_parameters_once_and_only_if_the_fault_strikes) {
  SyntheticTrainer trainer({.parameters = 77, .seed = 3});
  std::vector<float> parameters(77), sum(77);
  trainer.initial_parameters(parameters);
  const std::vector<float> before = parameters;
  trainer.flip_later(5, [](const Digest&) { return false; });
  trainer.work(parameters, item_of(0, 1), sum);
  EXPECT_EQ(parameters, before);
  Digest flipped;
  trainer.flip_later(5, [&](const Digest& after) {
    flipped = after;
    return true;
  });
  trainer.work(parameters, item_of(0, 1), sum);
  trainer.work(parameters, item_of(1, 1), sum);
  std::vector<float> expected = before;
  expected[5] = parameters[5];
  EXPECT_EQ(parameters, expected);
  EXPECT_NE(parameters[5], before[5]);
  EXPECT_EQ(flipped, digest_of_parameters(parameters));
}

TEST(SyntheticTrainer, goes_on_without_a_sample_that_is_gone_only_when_it_is_told_to) {
  SyntheticModel model{.parameters = 77, .seed = 3};
  model.lacks = [](std::uint64_t sample) { return sample == 8; };
  model.gone = [](std::uint64_t sample) { return sample == 5; };
  SyntheticTrainer trainer(model);
  std::vector<float> parameters(77), all(77), others(77), none(77);
  EXPECT_FALSE(trainer.work(parameters, item_of(0, 5), none).missing.has_value());
  none.assign(77, 0);
  const auto gone = trainer.work(parameters, item_of(0, 8), none).missing;
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->sample, 5U);
  EXPECT_TRUE(gone->skippable);
  swarm::WorkItem all_of_them = item_of(0, 9);
  all_of_them.skips = true;
  const auto lacking = trainer.work(parameters, all_of_them, none).missing;
  ASSERT_TRUE(lacking);
  EXPECT_EQ(lacking->sample, 8U);
  EXPECT_FALSE(lacking->skippable);
  EXPECT_EQ(none, std::vector<float>(77)) << "nothing was computed";
  swarm::WorkItem some = item_of(4, 3);
  some.skips = true;
  const train::WorkDone did = trainer.work(parameters, some, all);
  EXPECT_EQ(did.skipped, (std::vector{*gone}));
  trainer.work(parameters, item_of(4, 1), others);
  trainer.work(parameters, item_of(6, 1), others);
  EXPECT_EQ(all, others);
}

TEST(SyntheticTrainer, begins_with_the_same_parameters_for_the_same_seed) {
  std::vector<float> a(50), b(50), c(50);
  SyntheticTrainer({50, 1}).initial_parameters(a);
  SyntheticTrainer({50, 1}).initial_parameters(b);
  SyntheticTrainer({50, 2}).initial_parameters(c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace tw::sim
