// SPDX-License-Identifier: Apache-2.0
#include "base/text/columns.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(Columns, are_counted_by_characters) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("peer"), 4U);
  EXPECT_EQ(columns_of("Zürich"), 6U);
  EXPECT_EQ(columns_of("e\xcc\x81t"), 2U);  // e with a combining acute accent
  EXPECT_EQ(columns_of("東京"), 4U);
  EXPECT_EQ(columns_of("🚀 up"), 5U);
}

TEST(Columns, of_what_is_cut_stay_within_the_limit) {
  EXPECT_EQ(cut_to("Zürich", 6), "Zürich");
  EXPECT_EQ(cut_to("Zürich", 4), "Zür…");
  EXPECT_EQ(cut_to("東京都", 4), "東…");
  EXPECT_EQ(cut_to("東京", 4), "東京");
  EXPECT_EQ(cut_to("ab", 1), "…");
  EXPECT_EQ(cut_to("ab", 0), "");
}

TEST(Columns, are_filled_on_either_side) {
  EXPECT_EQ(fitted("ü", 3), "ü  ");
  EXPECT_EQ(fitted("ü", 3, true), "  ü");
  EXPECT_EQ(fitted("東京", 3), "東…");
  EXPECT_EQ(fitted("東京都", 4), "東… ");
}

}  // namespace
}  // namespace tw
