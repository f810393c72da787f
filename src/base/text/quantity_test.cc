// SPDX-License-Identifier: Apache-2.0
#include "base/text/quantity.h"

#include <gtest/gtest.h>

#include "base/text/number.h"

namespace tw {
namespace {

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
