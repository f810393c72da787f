// SPDX-License-Identifier: Apache-2.0
#include "average/fragments.h"

#include <gtest/gtest.h>

#include <string>

#include "base/prng.h"

namespace tw::average {
namespace {

std::string cuts(const Fragments& fragments) {
  std::string text;
  for (const Fragment& one : fragments.all())
    text += std::to_string(one.first) + "+" + std::to_string(one.geometry.length) + " ";
  return text;
}

TEST(Fragments, end_between_tensors_where_one_ends_near) {
  EXPECT_EQ("0+102 102+100 202+98 300+100 ", cuts({{102, 100, 198}, 4}));
  EXPECT_EQ("0+50 50+50 ", cuts({{60, 40}, 2})) << "60 is farther than an eighth of 50";
}

TEST(Fragments, are_equal_where_no_tensor_ends) {
  EXPECT_EQ("0+4 4+3 7+3 ", cuts({{10}, 3}));
  EXPECT_EQ("0+10 ", cuts({{10}, 1}));
}

TEST(Fragments, are_never_empty) { EXPECT_EQ("0+1 1+1 2+1 ", cuts({{1, 1, 1}, 8})); }

TEST(Fragments, take_turns) {
  const Fragments fragments{{8, 8, 8}, 3};
  for (Round round = 1; round < 10; ++round) EXPECT_EQ(8 * (round % 3), fragments.of(round).first);
  const Fragments whole{Geometry{24, 8}};
  for (Round round = 1; round < 10; ++round) EXPECT_EQ(24U, whole.of(round).geometry.length);
}

TEST(Fragments, cover_the_vector_once_whatever_its_tensors) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Prng random(seed);
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t n = 1 + random.below(9); n > 0; --n) sizes.push_back(random.below(50));
    sizes.push_back(1 + random.below(1000));
    const Fragments fragments{sizes, 1 + random.below(9)};
    std::uint64_t next = 0, longest = 0;
    for (const Fragment& one : fragments.all()) {
      EXPECT_EQ(next, one.first);
      EXPECT_GT(one.geometry.length, 0U);
      next = one.first + one.geometry.length;
      longest = std::max(longest, one.geometry.length);
    }
    EXPECT_EQ(fragments.length(), next);
    EXPECT_EQ(longest, fragments.largest().length);
    EXPECT_LE(longest * fragments.all().size(), next + next / 4 + fragments.all().size());
  }
}

}  // namespace
}  // namespace tw::average
