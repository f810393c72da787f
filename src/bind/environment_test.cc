// SPDX-License-Identifier: Apache-2.0
#include "bind/environment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tw::bind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Variables = std::map<std::string, std::string>;

Result<Pairs> merged(Pairs given, Variables variables) {
  return with_environment(std::move(given), [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second : std::string();
  });
}

TEST(Environment, adds_what_the_program_does_not_set) {
  const auto all = merged({{"site", "lab"}}, {{"TRADEWIND_RUN", "run.yaml"},
                                              {"TRADEWIND_RUN_FOLDER", "secrets"},
                                              {"TRADEWIND_JOIN", "a:1, b:2"},
                                              {"TRADEWIND_WAIT_FOR", "3"},
                                              {"TRADEWIND_INSECURE", "1"}});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all.value(), ElementsAre(Pair("site", "lab"), Pair("run_file", "run.yaml"), Pair("join", "a:1"),
                                       Pair("join", "b:2"), Pair("wait_for", "3"), Pair("run", "secrets"),
                                       Pair("insecure", "true")));
}

TEST(Environment, takes_keys_of_the_run_file_by_their_last_part) {
  const auto all = merged({}, {{"TRADEWIND_SET", "rounds=5; checkpoint.every=2"}});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all.value(), ElementsAre(Pair("training.rounds", "5"), Pair("checkpoint.every", "2")));
  EXPECT_THAT(merged({}, {{"TRADEWIND_SET", "rounds"}}).error().message,
              HasSubstr("\"rounds\": expected KEY="));
}

TEST(Environment, refuses_a_key_that_one_variable_has_with_two_values) {
  for (const char* set : {"rounds=3; rounds=4", "rounds=3;training.rounds=4"})
    EXPECT_EQ(merged({}, {{"TRADEWIND_SET", set}}).error().message,
              "TRADEWIND_SET: training.rounds is given twice, 3 and 4");
  EXPECT_TRUE(merged({}, {{"TRADEWIND_SET", "insecure=1; insecure=yes"}})) << "both say the same";
}

TEST(Environment, has_the_threads_of_a_program_that_does_not_say_them) {
  EXPECT_THAT(merged({}, {{"TRADEWIND_THREADS", "3"}}).value(), ElementsAre(Pair("threads", "3")));
  EXPECT_THAT(merged({{"threads", "2"}}, {{"TRADEWIND_THREADS", "3"}}).value(),
              ElementsAre(Pair("threads", "2")));
  for (const char* wrong : {"0", "-1", "100000"})
    EXPECT_THAT(merged({{"threads", "2"}}, {{"TRADEWIND_THREADS", wrong}}).error().message,
                HasSubstr(std::string("threads=") + wrong + ": expected a whole number from 1 to 1024"));
}

TEST(Environment, takes_flags_as_shells_write_them_wherever_they_stand) {
  const auto all = merged({{"insecure", "1"}, {"anew", "no"}},
                          {{"TRADEWIND_INSECURE", "yes"}, {"TRADEWIND_SET", "rejoin=on; site=1"}});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all.value(), ElementsAre(Pair("insecure", "true"), Pair("anew", "false"),
                                       Pair("rejoin", "true"), Pair("site", "1")));
}

TEST(Environment, compares_flags_of_the_run_file_by_what_they_say) {
  const auto all = merged({{"training.exact_batches", "true"}},
                          {{"TRADEWIND_SET", "exact_batches=on; error_feedback=0; seed=1"}});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all.value(), ElementsAre(Pair("training.exact_batches", "true"),
                                       Pair("training.error_feedback", "false"), Pair("training.seed", "1")));
}

TEST(Environment, refuses_a_setting_that_the_program_has_with_another_value) {
  EXPECT_TRUE(merged({{"site", "lab"}}, {{"TRADEWIND_SITE", "lab"}}));
  const auto all = merged({{"site", "lab"}}, {{"TRADEWIND_SITE", "home"}});
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().message,
            "site is lab in the program and home in TRADEWIND_SITE: leave one of them out");
}

TEST(Environment, writes_no_lines_where_either_wants_none) {
  const auto progress = [](const std::string& program, const std::string& variable) {
    return merged({{"progress", program}}, {{"TRADEWIND_PROGRESS", variable}}).value().front().second;
  };
  EXPECT_EQ("off", progress("line", "off"));
  EXPECT_EQ("off", progress("off", "line"));
  EXPECT_EQ("auto", progress("auto", "line"));
}

TEST(Environment, leaves_a_wrong_word_of_progress_for_its_refusal_whatever_the_other_side_says) {
  const auto progress = [](const std::string& program, const std::string& variable) {
    return merged({{"progress", program}}, {{"TRADEWIND_PROGRESS", variable}}).value().front().second;
  };
  EXPECT_EQ("true", progress("true", "off"));
  EXPECT_EQ("verbose", progress("verbose", "line"));
  EXPECT_EQ("verbose", progress("line", "verbose"));
}

TEST(Environment, names_a_variable_that_is_misspelt) {
  const auto value = [](const std::string&) { return std::string("5"); };
  EXPECT_THAT(misspelt_variables({"TRADEWIND_WAITFOR", "PATH", "TRADEWIND_JION", "TRADEWIND_ROUNDS"}, value),
              ElementsAre("TRADEWIND_JION is not read: did you mean TRADEWIND_JOIN?",
                          "TRADEWIND_ROUNDS is not read: did you mean TRADEWIND_SET=training.rounds=5?",
                          "TRADEWIND_WAITFOR is not read: did you mean TRADEWIND_WAIT_FOR?"));
  for (const auto& [wrong, meant] :
       {std::pair("TRADEWIND_TOKN", "TRADEWIND_TOKEN"), std::pair("TRADEWIND_TOKENS", "TRADEWIND_TOKEN"),
        std::pair("TRADEWIND_OUTT", "TRADEWIND_OUT"), std::pair("TRADEWIND_SIITE", "TRADEWIND_SITE")})
    EXPECT_THAT(misspelt_variables({wrong}, value),
                ElementsAre(fmt::format("{} is not read: did you mean {}?", wrong, meant)));
  for (const char* fine : {"TRADEWIND_JOIN", "TRADEWIND_RUN_FOLDER", "TRADEWIND_LIBRARY", "TRADEWIND_THREADS",
                           "TRADEWIND_LAUNCHER", "TRADEWIND_SERVICE_HOST", "TRADEWIND_PORT",
                           "TRADEWIND_REGION", "TRADEWIND_SIZE", "TRADEWIND_BATCH", "TRADEWIND_UID",
                           "TRADEWIND_NEW", "TRADEWIND_", "TRADEWIND_DATA_OF_MINE", "JION"})
    EXPECT_TRUE(misspelt_variables({fine}, value).empty()) << fine;
}

TEST(Environment, a_process_that_is_started_again_goes_on_whatever_its_program_says_of_the_first_start) {
  const auto rejoin = [](const char* value) {
    return [value](const std::string& name) {
      return name == "TRADEWIND_REJOIN" ? std::string(value) : std::string();
    };
  };
  const Pairs given = {{"anew", "true"}, {"no_rejoin", "true"}, {"site", "lab"}};
  Pairs again = given, first = given;
  EXPECT_THAT(
      let_rejoin_win(again, rejoin("1")),
      ElementsAre("this process was started again (TRADEWIND_REJOIN=1), and its run goes on: anew=True "
                  "of the program does not count",
                  HasSubstr("no_rejoin=True of the program does not count")));
  EXPECT_THAT(again, ElementsAre(Pair("site", "lab")));
  EXPECT_TRUE(let_rejoin_win(first, rejoin("")).empty());
  EXPECT_EQ(first, given);
}

}  // namespace
}  // namespace tw::bind
