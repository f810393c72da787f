// SPDX-License-Identifier: Apache-2.0
#include "base/range_set.h"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.h"

namespace tw {
namespace {

using Numbers = std::set<std::uint64_t>;

Range random_range(Prng& prng) { return {prng.below(60), prng.below(12)}; }

struct Twins {
  RangeSet ranges;
  Numbers numbers;
};

Twins random_set(Prng& prng) {
  Twins twins;
  const std::uint64_t n = prng.below(6);
  for (std::uint64_t i = 0; i < n; ++i) {
    const Range range = random_range(prng);
    twins.ranges.add(range);
    for (std::uint64_t k = range.first; k < range.end(); ++k) twins.numbers.insert(k);
  }
  return twins;
}

Numbers numbers_of(const RangeSet& set) {
  Numbers numbers;
  for (const Range& r : set.ranges()) {
    for (std::uint64_t k = r.first; k < r.end(); ++k) numbers.insert(k);
  }
  return numbers;
}

bool canonical(const RangeSet& set) {
  RangeSet copy;
  return copy.adopt(set.ranges()) && copy == set;
}

TEST(RangeSet, does_what_a_set_of_numbers_does) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Prng prng(seed);
    Twins a = random_set(prng);
    const Twins b = random_set(prng);
    ASSERT_TRUE(canonical(a.ranges)) << "seed " << seed;
    ASSERT_EQ(a.ranges.count(), a.numbers.size()) << "seed " << seed;
    for (std::uint64_t k = 0; k < 75; ++k)
      ASSERT_EQ(a.ranges.contains(k), a.numbers.count(k) == 1) << "seed " << seed;
    Numbers both, sum = a.numbers, rest;
    sum.insert(b.numbers.begin(), b.numbers.end());
    for (const std::uint64_t k : a.numbers) (b.numbers.count(k) == 1 ? both : rest).insert(k);
    ASSERT_EQ(a.ranges.intersects(b.ranges), !both.empty()) << "seed " << seed;
    ASSERT_EQ(a.ranges.contains(b.ranges), both.size() == b.numbers.size()) << "seed " << seed;
    RangeSet added = a.ranges;
    added.add(b.ranges);
    ASSERT_TRUE(canonical(added)) << "seed " << seed;
    ASSERT_EQ(numbers_of(added), sum) << "seed " << seed;
    RangeSet removed = a.ranges;
    removed.remove(b.ranges);
    ASSERT_TRUE(canonical(removed)) << "seed " << seed;
    ASSERT_EQ(numbers_of(removed), rest) << "seed " << seed;
  }
}

TEST(RangeSet, takes_the_smallest_numbers) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Prng prng(seed);
    Twins set = random_set(prng);
    const std::uint64_t n = prng.below(30);
    const RangeSet taken = set.ranges.take(n);
    ASSERT_TRUE(canonical(taken) && canonical(set.ranges)) << "seed " << seed;
    Numbers first;
    for (const std::uint64_t k : set.numbers) {
      if (first.size() < n) first.insert(k);
    }
    ASSERT_EQ(numbers_of(taken), first) << "seed " << seed;
    ASSERT_EQ(set.ranges.count(), set.numbers.size() - first.size()) << "seed " << seed;
  }
}

TEST(RangeSet, adopts_only_sorted_disjoint_apart_and_sound_ranges) {
  RangeSet set(Range{5, 2});
  const RangeSet before = set;
  EXPECT_FALSE(set.adopt({{0, 0}}));
  EXPECT_FALSE(set.adopt({{4, 2}, {0, 1}}));
  EXPECT_FALSE(set.adopt({{0, 3}, {2, 2}}));
  EXPECT_FALSE(set.adopt({{0, 3}, {3, 2}})) << "neighbours are one range";
  EXPECT_FALSE(set.adopt({{UINT64_MAX, 1}})) << "its end does not fit";
  EXPECT_FALSE(set.adopt({{1, UINT64_MAX}}));
  EXPECT_EQ(set, before);
  EXPECT_TRUE(set.adopt({{0, 3}, {4, 2}, {UINT64_MAX - 1, 1}}));
  EXPECT_EQ(set.count(), 6U);
  EXPECT_TRUE(set.adopt({}));
  EXPECT_TRUE(set.empty());
}

TEST(RangeSet, knows_which_number_stands_at_which_place) {
  RangeSet set(Range{10, 3});
  set.add(Range{20, 4});
  EXPECT_EQ(set.at(RangeSet(Range{0, 3})), RangeSet(Range{10, 3}));
  RangeSet both(Range{12, 1});
  both.add(Range{20, 1});
  EXPECT_EQ(set.at(RangeSet(Range{2, 2})), both);
  EXPECT_EQ(set.at(RangeSet(Range{6, 9})), RangeSet(Range{23, 1})) << "no number stands beyond the last";
  EXPECT_TRUE(set.at(RangeSet()).empty());
}

TEST(RangeSet, reads_well) {
  RangeSet set(Range{0, 32});
  set.add(Range{40, 1});
  EXPECT_EQ(to_string(set), "0-31,40");
  EXPECT_EQ(to_string(RangeSet()), "");
}

}  // namespace
}  // namespace tw
