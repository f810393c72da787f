// SPDX-License-Identifier: Apache-2.0
#include "launch/program_crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tw::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct Shown {
  std::vector<std::string> out, said;

  int run(const std::string& script, std::vector<std::vector<Variable>> environments,
          std::uint64_t restarts = 0) {
    ProgramCrew crew({.words = {"sh", "-c", script},
                      .environments = std::move(environments),
                      .restarts = restarts,
                      .out = [this](const std::string& line) { out.push_back(line); },
                      .say = [this](const std::string& line) { said.push_back(line); }});
    return crew.run();
  }
};

std::vector<std::vector<Variable>> two() { return {{{"TRADEWIND_ID", "1"}}, {{"TRADEWIND_ID", "2"}}}; }

TEST(ProgramCrew, runs_each_process_with_its_variables_and_says_which_one_printed) {
  Shown shown;
  EXPECT_EQ(0, shown.run("echo peer $TRADEWIND_ID; printf rest >&2", two()));
  EXPECT_THAT(shown.out, UnorderedElementsAre("[1] peer 1", "[1] rest", "[2] peer 2", "[2] rest"));
  EXPECT_TRUE(shown.said.empty());
}

TEST(ProgramCrew, ends_with_the_code_of_the_first_that_failed) {
  Shown shown;
  EXPECT_EQ(3, shown.run("exit $((TRADEWIND_ID * 3 - 3))", two()));
  EXPECT_THAT(shown.said, ElementsAre("process 2 ended with exit code 3"));
}

TEST(ProgramCrew, ends_well_when_a_process_was_lost_and_another_one_was_not) {
  Shown shown;
  EXPECT_EQ(0, shown.run("test $TRADEWIND_ID = 1 || kill -9 $$", two()));
  EXPECT_THAT(shown.said, ElementsAre("process 2 ended with signal 9"));
  EXPECT_EQ(137, Shown().run("kill -9 $$", two())) << "nobody was left";
}

TEST(ProgramCrew, starts_a_process_again_that_a_signal_ended) {
  Shown shown;
  EXPECT_EQ(137, shown.run("echo here; kill -9 $$", {{}}, 2));
  EXPECT_THAT(shown.out, ElementsAre("[1] here", "[1] here", "[1] here"));
  EXPECT_EQ(1, Shown().run("exit 1", {{}}, 2)) << "a program that fails by itself would fail again";
}

TEST(ProgramCrew, says_when_there_is_no_such_program) {
  std::vector<std::string> out;
  ProgramCrew crew({.words = {"no-such-program-here"},
                    .environments = {{}},
                    .out = [&](const std::string& line) { out.push_back(line); },
                    .say = [](const std::string&) {}});
  EXPECT_EQ(127, crew.run());
  EXPECT_THAT(out, ElementsAre(HasSubstr("no-such-program-here: cannot be started: No such file")));
}

}  // namespace
}  // namespace tw::launch
