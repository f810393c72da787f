// SPDX-License-Identifier: Apache-2.0
#include "base/text/size.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tw
