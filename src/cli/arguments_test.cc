// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(Count, is_taken_within_its_bounds) {
  EXPECT_EQ(parse_count("--peers", "1", {1, 64}).value(), 1U);
  EXPECT_EQ(parse_count("--peers", "64", {1, 64}).value(), 64U);
  EXPECT_EQ(parse_count("--id", "18446744073709551615", {}).value(), UINT64_MAX);
}

TEST(Count, that_is_wrong_names_option_value_bounds_and_the_nearest_right_one) {
  EXPECT_EQ(parse_count("--peers", "65", {1, 64}).error().message,
            "--peers 65: expected a whole number from 1 to 64, for example --peers 64");
  EXPECT_EQ(parse_count("--peers", "0", {1, 64}).error().message,
            "--peers 0: expected a whole number from 1 to 64, for example --peers 1");
  for (const char* text : {"", "two", "-1", "1.5", "4x", " 4", "99999999999999999999"})
    EXPECT_TRUE(
        says(parse_count("--peers", text, {1, 64}).error().message, "expected a whole number from 1 to 64"))
        << text;
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

TEST(AddressOption, that_is_none_shows_a_right_one) {
  EXPECT_EQ(parse_address_option("--join", "10.0.0.5").error().message,
            "--join 10.0.0.5: expected HOST:PORT, such as 10.0.0.5:7000");
  EXPECT_FALSE(parse_address_option("--join", "127.0.0.1:70000"));
  EXPECT_FALSE(parse_address_option("--join", ""));
}

TEST(Site, is_one_word_of_64_bytes_at_most) {
  for (const std::string& text : {std::string("aws:us-east-1:a"), std::string(), std::string(64, 'x')}) {
    const auto site = parse_site_option(text);
    ASSERT_TRUE(site) << text;
    EXPECT_EQ(site.value(), text);
  }
  for (const std::string& text : {std::string(65, 'x'), std::string("my rack"), std::string("a\nb")}) {
    const auto site = parse_site_option(text);
    ASSERT_FALSE(site) << text;
    EXPECT_TRUE(says(site.error().message, "--site " + text)) << site.error().message;
    EXPECT_TRUE(says(site.error().message, "aws:us-east-1:a")) << site.error().message;
  }
}

}  // namespace
}  // namespace tw
