// SPDX-License-Identifier: Apache-2.0
#include "base/prng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

namespace tw {
namespace {

TEST(Prng, is_splitmix64) {
  // Reference values of the algorithm's published C code for seed 1234567.
  Prng prng(1234567);
  EXPECT_EQ(prng.next(), 6457827717110365317U);
  EXPECT_EQ(prng.next(), 3203168211198807973U);
  EXPECT_EQ(prng.next(), 9817491932198370423U);
}

TEST(Prng, below_reaches_every_number_about_equally_often) {
  Prng prng(3);
  std::array<int, 7> hits{};
  for (int i = 0; i < 70000; ++i) ++hits.at(prng.below(7));
  for (const int hit : hits) EXPECT_NEAR(hit, 10000, 500);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(prng.below(1), 0U);
}

TEST(Prng, uniform_stays_in_the_unit_interval_and_fills_it) {
  Prng prng(4);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = prng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.01);
}

TEST(Prng, chance_follows_the_probability) {
  Prng prng(5);
  int hits = 0;
  for (int i = 0; i < 100000; ++i) hits += prng.chance(0.3) ? 1 : 0;
  EXPECT_NEAR(hits, 30000, 1000);
  EXPECT_FALSE(prng.chance(0.0));
  EXPECT_TRUE(prng.chance(1.0));
}

TEST(Prng, mixed_seeds_differ_and_depend_on_the_order) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t a = 0; a < 50; ++a) {
    for (std::uint64_t b = 0; b < 50; ++b) seeds.insert(mix(a, b));
  }
  EXPECT_EQ(seeds.size(), 2500U);
}

}  // namespace
}  // namespace tw
