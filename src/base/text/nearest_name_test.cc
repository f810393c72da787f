// SPDX-License-Identifier: Apache-2.0
#include "base/text/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tw {
namespace {

TEST(NearestName, counts_edits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "ab"), 2U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("saturday", "sunday"), 3U);
  EXPECT_EQ(edit_distance("tsb", "tbs"), 1U);
  EXPECT_EQ(edit_distance("ab", "ba"), 1U);
  EXPECT_EQ(edit_distance("abc", "ca"), 3U);
}

TEST(NearestName, forgives_a_third_of_the_characters) {
  EXPECT_TRUE(resembles("optimiser", "optimizer"));
  EXPECT_TRUE(resembles("round", "rounds"));
  EXPECT_FALSE(resembles("lr", "learning_rate"));
  EXPECT_FALSE(resembles("every", "seed"));
}

TEST(NearestName, is_the_nearest_of_those_that_resemble_it) {
  const std::vector<std::string> known = {"tbs", "samples", "samples_per_s"};
  EXPECT_EQ(nearest_name("sample", known), "samples");
  EXPECT_EQ(nearest_name("tsb", known), "tbs");
  EXPECT_EQ(nearest_name("rounds", known), "");
  EXPECT_EQ(nearest_name("modle", std::vector<std::string>{"mode", "model"}), "model");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("FP16", std::vector<std::string>{"fp32", "fp16"}), "fp16") << "in any case";
}

}  // namespace
}  // namespace tw
