// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/arguments.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

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

TEST(EmptyWord, is_no_value_of_any_option) {
  const auto found_in = [](std::vector<std::string> words) {
    std::string text, file;
    std::vector<std::string> list;
    bool flag = false;
    CLI::App app;
    CLI::App* command = app.add_subcommand("report", "");
    command->add_option("LOGS", text, "folder with event logs");
    command->add_option("--csv", file, "write tables into this folder");
    command->add_option("--join", list, "HOST:PORT of any peer")->allow_extra_args(false);
    command->add_flag("--json", flag, "print JSON");
    std::ranges::reverse(words);
    app.parse(words);
    return empty_word_in(app);
  };
  EXPECT_EQ(found_in({"report", "logs", "--csv", ""}),
            "--csv: found an empty text, expected a value (write tables into this folder)");
  EXPECT_EQ(found_in({"report", ""}), "LOGS: found an empty text, expected a value (folder with event logs)");
  EXPECT_TRUE(
      says(found_in({"report", "logs", "--join", "a:1", "--join", ""}), "--join: found an empty text"));
  EXPECT_EQ(found_in({"report", "logs", "--csv", "tables", "--join", "a:1", "--json"}), "");
  EXPECT_EQ(found_in({"report"}), "");
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
