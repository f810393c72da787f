// SPDX-License-Identifier: Apache-2.0
#include "base/median.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(Median, lies_in_the_middle) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Quantile, lies_between_the_values) {
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), median({3, 1, 2}));
  EXPECT_EQ(quantile({3, 1, 2}, 0.75), 2.5);
  EXPECT_EQ(quantile({3, 1, 2}, 1), 3);
}

}  // namespace
}  // namespace tw
