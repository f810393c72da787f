// SPDX-License-Identifier: Apache-2.0
#include "base/text/quantity.h"

#include <gtest/gtest.h>

#include "base/text/number.h"

namespace tw {
namespace {

TEST(Size, is_shown_in_the_largest_unit_that_loses_nothing) {
  EXPECT_EQ(size_text(64U << 20U), "64 MiB");
  EXPECT_EQ(size_text(256'000'000), "256 MB");
  EXPECT_EQ(size_text(4096), "4 KiB");
  EXPECT_EQ(size_text(12), "12 B");
}

TEST(Size, is_read_up_to_a_tebibyte) {
  EXPECT_EQ(parse_size("1024GiB"), 1ULL << 40);
  EXPECT_EQ(parse_size("1025GiB"), std::nullopt);
  EXPECT_EQ(parse_size("0B"), std::nullopt);
}

TEST(Quantity, groups_thousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1510400), "1,510,400");
}

TEST(Quantity, has_the_digits_that_count_and_no_exponent) {
  EXPECT_EQ(significant(104512, 4), "104,500");
  EXPECT_EQ(significant(999.96, 4), "1,000");
  EXPECT_EQ(significant(1.454e8, 4), "145,400,000");
  EXPECT_EQ(significant(607.64, 4), "607.6");
  EXPECT_EQ(significant(23.04, 3), "23");
  EXPECT_EQ(significant(-0.4641, 3), "-0.464");
  EXPECT_EQ(significant(7.62e-5, 2), "0.000076");
  EXPECT_EQ(significant(0, 4), "0");
  EXPECT_EQ(significant(kInfinity, 4), "inf");
}

}  // namespace
}  // namespace tw
