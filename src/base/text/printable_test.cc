// SPDX-License-Identifier: Apache-2.0
#include "base/text/printable.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

using namespace std::string_literals;

TEST(Printable, leaves_plain_text_of_any_language_as_it_is) {
  for (const std::string_view text : {"", "round 3", "größer · 日本語 \xf0\x9f\x8c\xac", "a\tb\nc"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, shows_what_would_command_a_terminal) {
  const std::pair<std::string, std::string> cases[] = {
      {"\x1b[2J", "\\x1b[2J"},
      {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
      {"a\rb\b", "a\\x0db\\x08"},
      {"nul\0byte"s, "nul\\x00byte"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b"s + "31m", "\\xc2\\x9b31m"},
      {"\xe2\x80\xae", "\\xe2\\x80\\xae"},
      {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable(text), shown);
}

TEST(Printable, shows_bytes_that_are_not_utf8) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xff\xfe", "\\xff\\xfe"},  // not the first bytes of a character
      {"\x80", "\\x80"},           // only a continuation
      {"\xc3", "\\xc3"},           // the text ends within a character
      {"\xc0\xaf", "\\xc0\\xaf"},  // overlong
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable(text), shown);
}

TEST(Printable, keeps_a_line_in_one_line) {
  EXPECT_EQ(printable_line("why\n\ttw: forged"), "why\\n\\ttw: forged");
  EXPECT_TRUE(is_printable_line("us-east-1 größer"));
  for (const std::string& text : {"a\nb"s, "a\tb"s, "a\0b"s, "\xff"s}) EXPECT_FALSE(is_printable_line(text));
}

}  // namespace
}  // namespace tw
