// SPDX-License-Identifier: Apache-2.0
#include "base/range_text.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(Ranges, are_read_as_they_are_written) {
  RangeSet some(Range{0, 32});
  some.add(Range{40, 1});
  EXPECT_EQ(ranges_in(to_string(some)), some);
  EXPECT_EQ(ranges_in("7"), RangeSet(Range{7, 1}));
}

TEST(Ranges, are_not_guessed) {
  for (const char* text : {"", "x", "3-", "-3", "5-4", "1,,2", "1,", "1-18446744073709551615,x"})
    EXPECT_EQ(ranges_in(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tw
