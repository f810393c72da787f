// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/arguments.h"

#include <gtest/gtest.h>

namespace tw::cli {
namespace {

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(SeedRange, has_both_ends) {
  EXPECT_EQ(parse_seeds("1..100").value(), std::pair(std::uint64_t{1}, std::uint64_t{100}));
  EXPECT_EQ(parse_seeds("7..7").value(), std::pair(std::uint64_t{7}, std::uint64_t{7}));
  EXPECT_EQ(parse_seeds("0..18446744073709551614").value().second, UINT64_MAX - 1);
}

TEST(SeedRange, that_is_wrong_names_the_value_and_what_was_expected) {
  EXPECT_EQ(
      parse_seeds("100").error().message,
      "--seeds 100: expected A..B, the first seed and the last; for one seed --seed 100, for so many of "
      "them --seeds 1..100");
  EXPECT_EQ(parse_seeds("9..3").error().message,
            "--seeds 9..3: expected A..B, the first seed and the last; did you mean --seeds 3..9?");
  for (const char* text : {"", "..", "1..", "..3", "1-3", "a..b", "-1..3", "1..3..5"})
    EXPECT_TRUE(says(parse_seeds(text).error().message, "for example --seeds 1..100")) << text;
  EXPECT_TRUE(says(parse_seeds("0..18446744073709551615").error().message, "fewer than 2^64"));
}

TEST(Setting, is_a_key_and_whatever_follows_the_first_equals_sign) {
  EXPECT_EQ(parse_setting("data.text=a=b").value(),
            (std::pair<std::string, std::string>("data.text", "a=b")));
  EXPECT_EQ(parse_setting("checkpoint.folder=").value().second, "");
  EXPECT_TRUE(says(parse_setting("rounds").error().message, "--set rounds: expected KEY=VALUE"));
  EXPECT_FALSE(parse_setting("=3"));
}

}  // namespace
}  // namespace tw::cli
