// SPDX-License-Identifier: Apache-2.0
#include "base/text/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tw {
namespace {

TEST(Number, is_the_whole_text_or_nothing) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<double>("1.5e3"), 1500.0);
  for (const char* text : {"", " 1", "1 ", "1x", "x", "+1", "1.5", "0x10"}) {
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
  }
}

TEST(Number, is_nothing_where_the_type_does_not_hold_it) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
}

}  // namespace
}  // namespace tw
