// SPDX-License-Identifier: Apache-2.0
#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/prng.h"

namespace tw::data {
namespace {

std::vector<std::uint64_t> indices(const SampleOrder& order, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t s = first; s < first + count; ++s) out.push_back(order.index_of(s));
  return out;
}

TEST(SampleOrder, gives_these_very_indices_on_every_machine) {
  const SampleOrder order(42, 10);
  EXPECT_EQ(indices(order, 0, 10), (std::vector<std::uint64_t>{5, 7, 2, 3, 4, 8, 1, 0, 9, 6}));
  EXPECT_EQ(indices(order, 10, 10), (std::vector<std::uint64_t>{1, 7, 0, 5, 9, 6, 8, 2, 4, 3}));
  const SampleOrder other(43, 10);
  EXPECT_EQ(indices(other, 0, 10), (std::vector<std::uint64_t>{4, 0, 3, 1, 2, 5, 6, 9, 7, 8}));
}

TEST(SampleOrder, of_a_run_that_goes_on_from_another_one_goes_on) {
  const SampleOrder whole(42, 10), rest(42, 10, 1, 17);
  EXPECT_EQ(indices(rest, 0, 30), indices(whole, 17, 30));
  EXPECT_EQ(2U, rest.epoch_of(3));
  EXPECT_FALSE(whole == rest);
}

TEST(SampleOrder, visits_every_sample_once_an_epoch) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::uint64_t size = 1 + Prng(seed).below(300);
    const SampleOrder order(seed, size);
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<std::uint64_t> seen = indices(order, epoch * size, size);
      std::sort(seen.begin(), seen.end());
      for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(seen[i], i) << "seed " << seed << " epoch " << epoch;
    }
  }
}

TEST(SampleOrder, keeps_blocks_whole_and_what_is_beyond_the_last_one_at_its_place) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::uint64_t block = 2 + Prng(seed).below(9), blocks = 1 + seed % 7, tail = seed % block;
    const std::uint64_t size = blocks * block + tail;
    const SampleOrder order(seed, size, block);
    std::vector<std::uint64_t> seen = indices(order, 3 * size, size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const bool is_fixed = i >= blocks * block, follows = i % block > 0;
      ASSERT_TRUE(!is_fixed || seen[i] == i) << "seed " << seed;
      ASSERT_TRUE(!follows || seen[i] == seen[i - 1] + 1) << "seed " << seed;
    }
    std::sort(seen.begin(), seen.end());
    for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(seen[i], i) << "seed " << seed;
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

TEST(SampleOrder, works_for_large_data_sets_and_sample_numbers_far_into_a_run) {
  const SampleOrder order(1, 60000);
  EXPECT_LT(order.index_of(~std::uint64_t{0}), 60000U);
  const std::uint64_t size = (std::uint64_t{1} << 62) - 7;
  const SampleOrder large(1, size);
  for (std::uint64_t s = 0; s < 1000; ++s) ASSERT_LT(large.index_of(s), size);
}

/// Pearson's statistic of counts that should be equal.
double unevenness(const std::vector<std::uint64_t>& counts) {
  double sum = 0, squares = 0;
  for (const std::uint64_t count : counts) sum += static_cast<double>(count);
  const double expected = sum / static_cast<double>(counts.size());
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    squares += off * off / expected;
  }
  return squares;
}

TEST(Permutation, puts_every_sample_at_every_place_about_equally_often) {
  for (const std::uint64_t size : std::vector<std::uint64_t>{2, 3, 10, 17, 64}) {
    std::vector<std::uint64_t> counts(size * size);
    for (std::uint64_t key = 0; key < 2000 * size; ++key) {
      const Permutation permutation(mix(7, key), size);
      for (std::uint64_t i = 0; i < size; ++i) ++counts[i * size + permutation(i)];
    }
    const double freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(unevenness(counts), freedom + 5 * std::sqrt(2 * freedom)) << size;
  }
}

TEST(Permutation, has_neighbours_anywhere) {
  constexpr std::uint64_t kSize = 100'000;
  std::vector<std::uint64_t> counts(100);
  const Permutation permutation(11, kSize);
  for (std::uint64_t i = 0; i + 1 < kSize; ++i)
    ++counts[(permutation(i + 1) + kSize - permutation(i)) % kSize * counts.size() / kSize];
  EXPECT_LT(unevenness(counts), 99 + 5 * std::sqrt(2.0 * 99)) << "distances of neighbours";
}

}  // namespace
}  // namespace tw::data
