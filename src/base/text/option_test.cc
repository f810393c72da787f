// SPDX-License-Identifier: Apache-2.0
#include "base/text/option.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

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
  for (const std::string text : {"", "two", "-1", "1.5", "4x", " 4", "99999999999999999999"})
    EXPECT_EQ(parse_count("--peers", text, {1, 64}).error().message,
              "--peers " + text + ": expected a whole number from 1 to 64");
}

TEST(Count, that_is_wrong_in_a_program_is_named_as_it_stands_there) {
  EXPECT_EQ(parse_count(OptionName("peers", '='), "65", {1, 64}).error().message,
            "peers=65: expected a whole number from 1 to 64, for example peers=64");
  EXPECT_EQ(parse_count(OptionName("peers", '='), "x", {.least = 3}).error().message,
            "peers=x: expected a whole number from 3 on");
}

}  // namespace
}  // namespace tw
