// SPDX-License-Identifier: Apache-2.0
#include "monitor/terminal/terminal_line.h"

#include <gtest/gtest.h>

namespace tw::monitor {
namespace {

TerminalLine lost_line() {
  TerminalLine line;
  line.number("7", 3).cell("lost", 6, Paint::alarm).add("silent");
  return line;
}

TEST(TerminalLine, has_columns_of_fixed_width_and_no_spaces_at_its_end) {
  EXPECT_EQ(lost_line().text(80, false), "  7 lost   silent");
  EXPECT_EQ(lost_line().columns(), 17U);
  EXPECT_EQ(TerminalLine().cell("ab", 5).text(80, false), "ab");
  EXPECT_EQ(TerminalLine().cell("ab", 5, Paint::good).text(80, true), "\x1b[32mab\x1b[0m");
}

TEST(TerminalLine, is_cut_at_the_same_place_with_colours) {
  EXPECT_EQ(lost_line().text(13, false), "  7 lost   s…");
  EXPECT_EQ(lost_line().text(13, true), "  7 \x1b[1;31mlost   \x1b[0ms…");
  EXPECT_EQ(lost_line().text(6, true), "  7 \x1b[1;31ml\x1b[0m…");
  EXPECT_EQ(lost_line().text(1, true), "…");
  EXPECT_EQ(lost_line().text(0, true), "");
}

TEST(TerminalLine, shows_control_characters_of_others_as_text) {
  TerminalLine line;
  line.add("a\x1b[2Jb\nc").cell("\r", 4);
  EXPECT_EQ(line.text(80, false), "a\\x1b[2Jb\\nc\\x0d");
}

}  // namespace
}  // namespace tw::monitor
