// SPDX-License-Identifier: Apache-2.0
#include "launch/local/program_crew.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "host/system/temporary_folder.h"
#include "launch/local/child.h"

namespace tw::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct Shown {
  std::vector<std::string> out, said;
  host::TemporaryFolder folder;
  bool all_begin = false, must_join = false;

  int run(const std::string& script, std::vector<std::vector<Variable>> environments,
          std::uint64_t restarts = 0) {
    ProgramCrew crew({.words = {"sh", "-c", script},
                      .environments = std::move(environments),
                      .restarts = restarts,
                      .out = [this](const std::string& line) { out.push_back(line); },
                      .say = [this](const std::string& line) { said.push_back(line); },
                      .folder = folder.path(),
                      .must_join = must_join,
                      .all_begin = all_begin});
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

TEST(ProgramCrew, tells_a_process_that_it_starts_again_that_the_run_goes_on) {
  const std::string script = "echo anew=$TRADEWIND_ANEW rejoin=$TRADEWIND_REJOIN; ";
  const std::vector<Variable> anew = {{"TRADEWIND_ANEW", "1"}};
  Shown early, late;
  early.run(script + "kill -9 $$", {anew}, 1);
  EXPECT_THAT(early.out, ElementsAre("[1] anew=1 rejoin=", "[1] anew= rejoin=")) << "it had not begun";
  late.run(script + "echo begun > $TRADEWIND_VERDICT; kill -9 $$", {anew}, 1);
  EXPECT_THAT(late.out, ElementsAre("[1] anew=1 rejoin=", "[1] anew= rejoin=1"));
}

TEST(ProgramCrew, ends_those_that_wait_for_one_that_failed_before_the_run_began) {
  Shown shown;
  shown.all_begin = true;
  EXPECT_EQ(3, shown.run("test $TRADEWIND_ID = 2 && sleep 0.2 && exit 3; echo joining > $TRADEWIND_VERDICT; "
                         "sleep 60 & wait",
                         two()));
  EXPECT_THAT(shown.said,
              ElementsAre("process 2 ended with exit code 3",
                          "the run has not begun, and waited for process 2: the others are ended, too"));
}

TEST(ProgramCrew, lets_those_go_on_that_began_or_that_never_said_where_they_stand) {
  for (const char* word : {"echo begun > $TRADEWIND_VERDICT;", ""}) {
    Shown shown;
    shown.all_begin = true;
    EXPECT_EQ(3, shown.run(std::string("test $TRADEWIND_ID = 2 && sleep 0.2 && exit 3;") + word +
                               "sleep 0.5; echo done",
                           two()));
    EXPECT_THAT(shown.said, ElementsAre("process 2 ended with exit code 3")) << word;
    EXPECT_THAT(shown.out, ElementsAre("[1] done")) << word;
  }
}

TEST(ProgramCrew, starts_nobody_again_once_the_run_is_over) {
  Shown shown;
  EXPECT_EQ(0, shown.run("test $TRADEWIND_ID = 1 && exit 0; sleep 0.3; kill -9 $$", two(), 5));
  EXPECT_THAT(shown.said,
              ElementsAre("process 2 was ended by signal 9; the run is over, so it is not started again",
                          "process 2 ended with signal 9"));
}

TEST(ProgramCrew, counts_no_failure_of_one_that_came_back_after_the_end) {
  const std::string script =
      "test $TRADEWIND_ID = 1 && sleep 0.5 && exit 0; test -e FOLDER/again && "
      "{ echo joining > $TRADEWIND_VERDICT; exit 1; }; touch FOLDER/again; kill -9 $$";
  Shown shown;
  std::string here = script;
  for (std::size_t at = 0; (at = here.find("FOLDER")) != std::string::npos;)
    here.replace(at, 6, shown.folder.path());
  EXPECT_EQ(0, shown.run(here, two(), 5));
  EXPECT_THAT(shown.said, ElementsAre("process 2 was ended by signal 9; starting it again",
                                      "process 2 came back after the end of the run; that is no failure"));
  Shown alone;
  here = script.substr(script.find("test -e"));
  for (std::size_t at = 0; (at = here.find("FOLDER")) != std::string::npos;)
    here.replace(at, 6, alone.folder.path());
  EXPECT_EQ(1, alone.run(here, {{}}, 5)) << "nobody saw the end";
  EXPECT_THAT(alone.said.back(), "process 1 ended with exit code 1");
}

TEST(ProgramCrew, that_left_on_a_notice_says_that_the_run_goes_on) {
  Shown shown;
  EXPECT_EQ(kGoesOn, shown.run("exit 75", two()));
  EXPECT_TRUE(shown.said.empty()) << "it is no failure";
  EXPECT_EQ(0, Shown().run("exit $(((TRADEWIND_ID - 1) * 75))", two())) << "one saw the run to its end";
  EXPECT_EQ(3, Shown().run("test $TRADEWIND_ID = 1 && exit 3; exit 75", two()));
}

TEST(ProgramCrew, believes_what_a_program_says_of_its_peer) {
  const host::TemporaryFolder folder;
  const auto code = [&folder](const std::string& script) {
    ProgramCrew crew({.words = {"sh", "-c", script},
                      .environments = {{}},
                      .out = [](const std::string&) {},
                      .say = [](const std::string&) {},
                      .folder = folder.path()});
    return crew.run();
  };
  EXPECT_EQ(0, code("true"));
  EXPECT_EQ(kGoesOn, code("echo notice > $TRADEWIND_VERDICT"));
  EXPECT_EQ(1, code("echo notice > $TRADEWIND_VERDICT; exit 1")) << "it failed after it had left";
  EXPECT_EQ(kGoesOn, code("echo condemned > $TRADEWIND_VERDICT; exit 1"));
  EXPECT_EQ(0, code("echo complete > $TRADEWIND_VERDICT"));
  EXPECT_EQ(1, code("echo unsaved > $TRADEWIND_VERDICT")) << "its last checkpoint is missing";
  EXPECT_EQ(2, code("echo lost > $TRADEWIND_VERDICT; exit 1")) << "another start would fail, too";
}

TEST(ProgramCrew, a_program_that_never_took_part_has_failed_where_it_had_to) {
  const auto said = [](const std::string& script) {
    Shown shown;
    shown.must_join = true;
    const int code = shown.run(script, {{}});
    return fmt::format("{} {}", code, shown.said.empty() ? "" : shown.said.back());
  };
  const std::string never =
      "1 process 1 ended with exit code 0 and never took part in the run: does it call tradewind.join() and "
      "step()?";
  EXPECT_EQ(said("true"), never);
  EXPECT_EQ(said("echo joining > $TRADEWIND_VERDICT"), never);
  for (const char* word : {"begun", "started", "complete", "left"})
    EXPECT_EQ(said(std::string("echo ") + word + " > $TRADEWIND_VERDICT"), "0 ");
  EXPECT_EQ(said("exit 4"), "4 process 1 ended with exit code 4");
}

TEST(ProgramCrew, passes_each_signal_on_as_it_came) {
  Shown shown;
  EXPECT_EQ(kGoesOn, shown.run("trap 'echo got USR1; exit 75' USR1; kill -USR1 $PPID; sleep 5 & wait", {{}}));
  EXPECT_THAT(shown.out, ElementsAre("[1] got USR1"));
  EXPECT_EQ(kGoesOn, Shown().run("kill -TERM $PPID; sleep 5", {{}})) << "it had no handler yet";
  EXPECT_EQ(130, Shown().run("kill -INT $PPID; sleep 5", {{}}));
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
