// SPDX-License-Identifier: Apache-2.0
#include "train/nearest_name.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(NearestName, counts_edits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "ab"), 2U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("saturday", "sunday"), 3U);
}

TEST(NearestName, forgives_a_third_of_the_characters) {
  EXPECT_TRUE(resembles("optimiser", "optimizer"));
  EXPECT_TRUE(resembles("round", "rounds"));
  EXPECT_FALSE(resembles("lr", "learning_rate"));
  EXPECT_FALSE(resembles("every", "seed"));
}

}  // namespace
}  // namespace tw
