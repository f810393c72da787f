// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/screen.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

TEST(Screen, is_cleared_before_its_first_lines) {
  EXPECT_EQ(repainting({}, {"a", "b"}), "\x1b[?2026h\x1b[2J\x1b[1;1H\x1b[2Ka\x1b[2;1H\x1b[2Kb\x1b[?2026l");
}

TEST(Screen, gets_only_the_lines_that_differ) {
  EXPECT_EQ(repainting({"a", "b", "c"}, {"a", "x", "c"}), "\x1b[?2026h\x1b[2;1H\x1b[2Kx\x1b[?2026l");
  EXPECT_EQ(repainting({"a", "b"}, {"a", "b"}), "");
}

TEST(Screen, loses_lines_that_are_gone) {
  EXPECT_EQ(repainting({"a", "b"}, {"a"}), "\x1b[?2026h\x1b[2;1H\x1b[2K\x1b[?2026l");
}

TEST(Screen, has_a_size_also_where_there_is_no_terminal) {
  EXPECT_GT(screen_size().width, 0U);
  EXPECT_GT(screen_size().height, 0U);
}

}  // namespace
}  // namespace tw::cli
