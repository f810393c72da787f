// SPDX-License-Identifier: Apache-2.0
#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/prng.h"

namespace tw::data {
namespace {

std::vector<std::uint64_t> indices(SampleOrder& order, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t s = first; s < first + count; ++s) out.push_back(order.index_of(s));
  return out;
}

TEST(SampleOrder, gives_these_very_indices_on_every_machine) {
  SampleOrder order(42, 10);
  EXPECT_EQ(indices(order, 0, 10), (std::vector<std::uint64_t>{1, 7, 2, 5, 6, 4, 0, 9, 8, 3}));
  EXPECT_EQ(indices(order, 10, 10), (std::vector<std::uint64_t>{8, 6, 5, 2, 3, 0, 7, 9, 1, 4}));
  SampleOrder other(43, 10);
  EXPECT_EQ(indices(other, 0, 10), (std::vector<std::uint64_t>{0, 6, 5, 4, 7, 3, 9, 2, 1, 8}));
}

TEST(SampleOrder, visits_every_sample_once_an_epoch) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::uint64_t size = 1 + Prng(seed).below(300);
    SampleOrder order(seed, size);
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<std::uint64_t> seen = indices(order, epoch * size, size);
      std::sort(seen.begin(), seen.end());
      for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(seen[i], i) << "seed " << seed << " epoch " << epoch;
    }
  }
}

TEST(SampleOrder, depends_on_the_sample_number_alone_not_on_what_was_asked_before) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    constexpr std::uint64_t kSize = 17;
    SampleOrder in_order(seed, kSize);
    const std::vector<std::uint64_t> expected = indices(in_order, 0, 10 * kSize);
    SampleOrder jumping(seed, kSize);
    Prng prng(seed);
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t sample = prng.below(10 * kSize);
      ASSERT_EQ(jumping.index_of(sample), expected[sample]) << "seed " << seed << " sample " << sample;
    }
  }
}

TEST(SampleOrder, works_for_sample_numbers_far_into_a_run) {
  SampleOrder order(1, 60000);
  EXPECT_LT(order.index_of(~std::uint64_t{0}), 60000U);
}

}  // namespace
}  // namespace tw::data
