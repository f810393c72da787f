// SPDX-License-Identifier: Apache-2.0
#include "launch/local/crew.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "base/text/text_file.h"
#include "host/loop.h"
#include "host/system/temporary_folder.h"
#include "host/watched_process.h"
#include "launch/exit_codes.h"
#include "launch/local/child.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/test_logs.h"

namespace tw::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct Shown {
  std::vector<std::string> printed, said;
  host::TemporaryFolder folder;
  host::Loop clock;
  bool begins = false, must_join = false;
  std::size_t waits_for = SIZE_MAX;
  Script script{};
  std::string out{};  ///< of event logs

  int run(const std::string& program, std::vector<std::vector<Variable>> environments,
          std::uint64_t restarts = 0) {
    return try_run(program, std::move(environments), restarts).value();
  }

  Result<int> try_run(const std::string& program, std::vector<std::vector<Variable>> environments,
                      std::uint64_t restarts = 0) {
    Crew crew(clock, {.words = {"sh", "-c", program},
                      .environments = std::move(environments),
                      .restarts = restarts,
                      .out = [this](const std::string& line) { printed.push_back(line); },
                      .say = [this](const std::string& line) { said.push_back(line); },
                      .folder = folder.path(),
                      .must_join = must_join,
                      .begins = begins,
                      .waits_for = waits_for,
                      .script = script,
                      .newcomer =
                          [](std::uint64_t) {
                            return std::vector<Variable>{{"NEW", "yes"}};
                          },
                      .out_folder = out});
    return crew.run();
  }
};

std::vector<std::vector<Variable>> two() { return {{{"TRADEWIND_ID", "1"}}, {{"TRADEWIND_ID", "2"}}}; }

TEST(Crew, runs_each_process_with_its_variables_and_says_which_one_printed) {
  Shown shown;
  EXPECT_EQ(0, shown.run("echo peer $TRADEWIND_ID; printf rest >&2", two()));
  EXPECT_THAT(shown.printed, UnorderedElementsAre("[1] peer 1", "[1] rest", "[2] peer 2", "[2] rest"));
  EXPECT_TRUE(shown.said.empty());
}

TEST(Crew, ends_with_the_code_of_the_first_that_failed) {
  Shown shown;
  EXPECT_EQ(3, shown.run("exit $((TRADEWIND_ID * 3 - 3))", two()));
  EXPECT_THAT(shown.said, ElementsAre("process 2 ended with exit code 3"));
}

TEST(Crew, ends_well_when_a_process_was_lost_and_another_one_was_not) {
  Shown shown;
  EXPECT_EQ(0, shown.run("test $TRADEWIND_ID = 1 || kill -9 $$", two()));
  EXPECT_THAT(shown.said, ElementsAre("process 2 ended with signal 9"));
  EXPECT_EQ(137, Shown().run("kill -9 $$", two())) << "nobody was left";
}

TEST(Crew, starts_a_process_again_that_a_signal_ended) {
  Shown shown;
  EXPECT_EQ(137, shown.run("echo here; kill -9 $$", {{}}, 2));
  EXPECT_THAT(shown.printed, ElementsAre("[1] here", "[1] here", "[1] here"));
  EXPECT_EQ(1, Shown().run("exit 1", {{}}, 2)) << "a program that fails by itself would fail again";
}

TEST(Crew, tells_a_process_that_it_starts_again_that_the_run_goes_on) {
  const std::string script = "echo anew=$TRADEWIND_ANEW rejoin=$TRADEWIND_REJOIN; ";
  const std::vector<Variable> anew = {{"TRADEWIND_ANEW", "1"}};
  Shown early, late;
  early.run(script + "kill -9 $$", {anew}, 1);
  EXPECT_THAT(early.printed, ElementsAre("[1] anew=1 rejoin=", "[1] anew= rejoin=")) << "it had not begun";
  late.run(script + "echo begun > $TRADEWIND_VERDICT; kill -9 $$", {anew}, 1);
  EXPECT_THAT(late.printed, ElementsAre("[1] anew=1 rejoin=", "[1] anew= rejoin=1"));
}

TEST(Crew, ends_those_that_wait_for_one_that_failed_before_the_run_began) {
  Shown shown;
  shown.begins = true;
  EXPECT_EQ(3, shown.run("test $TRADEWIND_ID = 2 && sleep 0.2 && exit 3; echo joining > $TRADEWIND_VERDICT; "
                         "sleep 60 & wait",
                         two()));
  EXPECT_THAT(shown.said,
              ElementsAre("process 2 ended with exit code 3",
                          "the run has not begun, and waited for process 2: the others are ended, too"));
}

TEST(Crew, ends_those_that_come_to_wait_for_one_that_had_failed_before) {
  Shown shown;
  shown.begins = true;
  EXPECT_EQ(137, shown.run("test $TRADEWIND_ID = 1 && kill -9 $$; sleep 0.3; echo joining > "
                           "$TRADEWIND_VERDICT; sleep 60 & wait",
                           two()));
  EXPECT_THAT(shown.said,
              ElementsAre("process 1 ended with signal 9",
                          "the run has not begun, and waited for process 1: the others are ended, too"));
}

TEST(Crew, lets_those_wait_that_are_enough_to_begin) {
  Shown shown;
  shown.begins = true;
  shown.waits_for = 1;
  EXPECT_EQ(0,
            shown.run("test $TRADEWIND_ID = 1 && kill -9 $$; echo joining > $TRADEWIND_VERDICT; sleep 0.3; "
                      "echo complete > $TRADEWIND_VERDICT",
                      two()));
  EXPECT_THAT(shown.said, ElementsAre("process 1 ended with signal 9"));
}

TEST(Crew, ends_what_a_process_leaves_behind) {
  Shown shown;
  const std::string file = shown.folder.path() + "/pid";
  EXPECT_EQ(0, shown.run("sleep 60 & echo $! > " + file, {{}}));
  const std::string pid = read_text_file(file).value();
  EXPECT_FALSE(read_text_file("/proc/" + pid.substr(0, pid.find('\n')) + "/stat"));
  EXPECT_TRUE(shown.said.empty());
}

TEST(Crew, lets_those_go_on_that_began_or_that_never_said_where_they_stand) {
  for (const char* word : {"echo begun > $TRADEWIND_VERDICT;", ""}) {
    Shown shown;
    shown.begins = true;
    EXPECT_EQ(3, shown.run(std::string("test $TRADEWIND_ID = 2 && sleep 0.2 && exit 3;") + word +
                               "sleep 0.5; echo done; "
                               "test ! -s $TRADEWIND_VERDICT || echo complete > $TRADEWIND_VERDICT",
                           two()));
    EXPECT_THAT(shown.said, ElementsAre("process 2 ended with exit code 3")) << word;
    EXPECT_THAT(shown.printed, ElementsAre("[1] done")) << word;
  }
}

TEST(Crew, starts_nobody_again_once_the_run_is_over) {
  Shown shown;
  EXPECT_EQ(0, shown.run("test $TRADEWIND_ID = 1 && exit 0; sleep 0.3; kill -9 $$", two(), 5));
  EXPECT_THAT(shown.said,
              ElementsAre("process 2 was ended by signal 9; the run is over, so it is not started again",
                          "process 2 ended with signal 9"));
}

TEST(Crew, counts_no_failure_of_one_that_came_back_after_the_end) {
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

TEST(Crew, that_left_on_a_notice_says_that_the_run_goes_on) {
  Shown shown;
  EXPECT_EQ(kGoesOn, shown.run("exit 75", two()));
  EXPECT_TRUE(shown.said.empty()) << "it is no failure";
  EXPECT_EQ(0, Shown().run("exit $(((TRADEWIND_ID - 1) * 75))", two())) << "one saw the run to its end";
  EXPECT_EQ(3, Shown().run("test $TRADEWIND_ID = 1 && exit 3; exit 75", two()));
}

TEST(Crew, believes_what_a_program_says_of_its_peer) {
  const host::TemporaryFolder folder;
  host::Loop clock;
  const auto code = [&](const std::string& script) {
    Crew crew(clock, {.words = {"sh", "-c", script},
                      .environments = {{}},
                      .out = [](const std::string&) {},
                      .say = [](const std::string&) {},
                      .folder = folder.path()});
    return crew.run().value();
  };
  EXPECT_EQ(0, code("true"));
  EXPECT_EQ(kGoesOn, code("echo notice > $TRADEWIND_VERDICT"));
  EXPECT_EQ(1, code("echo notice > $TRADEWIND_VERDICT; exit 1")) << "it failed after it had left";
  EXPECT_EQ(kGoesOn, code("echo condemned > $TRADEWIND_VERDICT; exit 1"));
  EXPECT_EQ(kGoesOn, code("echo unreached > $TRADEWIND_VERDICT; exit 1")) << "another start may reach a peer";
  EXPECT_EQ(kGoesOn, code("echo unreached > $TRADEWIND_VERDICT"));
  EXPECT_EQ(0, code("echo complete > $TRADEWIND_VERDICT"));
  EXPECT_EQ(1, code("echo unsaved > $TRADEWIND_VERDICT")) << "its last checkpoint is missing";
  EXPECT_EQ(2, code("echo differs > $TRADEWIND_VERDICT")) << "which ones are right is not known";
  EXPECT_EQ(2, code("echo differs > $TRADEWIND_VERDICT; exit 1")) << "no start mends that";
  EXPECT_EQ(2, code("echo lost > $TRADEWIND_VERDICT; exit 1")) << "another start would fail, too";
}

TEST(Crew, gives_the_reason_of_an_exit_code_where_its_peer_said_it) {
  const auto said = [](const std::string& script) {
    Shown shown;
    shown.run(script, {{}});
    return fmt::format("{}", fmt::join(shown.said, "; "));
  };
  for (const char* end : {"", "; exit 1"})
    EXPECT_EQ(said(std::string("echo unsaved > $TRADEWIND_VERDICT") + end),
              "process 1 ended with exit code 1: its last checkpoint is missing");
  EXPECT_EQ(said("echo differs > $TRADEWIND_VERDICT"),
            "process 1 ended with exit code 2: other peers have other parameters");
  EXPECT_EQ(said("echo lost > $TRADEWIND_VERDICT; exit 1"),
            "process 1 ended with exit code 2: nothing is left of the run");
  EXPECT_EQ(said("echo unsaved > $TRADEWIND_VERDICT; exit 4"), "process 1 ended with exit code 4");
}

TEST(Crew, starts_nothing_where_its_folder_cannot_be_made) {
  Shown shown;
  shown.begins = true;
  shown.out = shown.folder.path() + "/file";
  std::ofstream(shown.out) << "here";
  const auto code = shown.try_run("echo here", {{}, {}});
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("--out " + shown.out + ": cannot make this folder"));
  EXPECT_TRUE(shown.printed.empty() && shown.said.empty());
}

TEST(Crew, a_program_that_never_took_part_has_failed_where_it_had_to) {
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
  for (const char* word : {"complete", "left", "over"})
    EXPECT_EQ(said(std::string("echo ") + word + " > $TRADEWIND_VERDICT"), "0 ");
  EXPECT_EQ(said("exit 4"), "4 process 1 ended with exit code 4");
}

TEST(Crew, that_ends_with_0_in_the_middle_of_its_run_has_failed_unless_one_completes_it) {
  const auto said = [](const std::string& script) {
    Shown shown;
    const int code = shown.run(script, two());
    std::ranges::sort(shown.said);
    return fmt::format("{} {}", code, fmt::join(shown.said, "|"));
  };
  const std::string first = "process 1 ended with exit code 0; the run is not complete",
                    second = "process 2 ended with exit code 0; the run is not complete";
  for (const char* word : {"begun", "closed", "failed"}) {
    const std::string early = std::string("echo ") + word + " > $TRADEWIND_VERDICT; ";
    EXPECT_EQ(said(early), "1 " + first + "|" + second);
    EXPECT_EQ(said(early + "test $TRADEWIND_ID = 2 || echo complete > $TRADEWIND_VERDICT"), "0 " + second);
    EXPECT_EQ(said(early + "test $TRADEWIND_ID = 2 || kill -9 $$"),
              "137 process 1 ended with signal 9|" + second);
    EXPECT_EQ(said(early + "test $TRADEWIND_ID = 2 || echo notice > $TRADEWIND_VERDICT"), "75 " + second);
  }
  EXPECT_EQ(said("echo closed > $TRADEWIND_VERDICT; test $TRADEWIND_ID = 2 || "
                 "{ echo unreached > $TRADEWIND_VERDICT; exit 1; }"),
            "1 " + second)
      << "one that came late is no notice";
  EXPECT_EQ(said("echo left > $TRADEWIND_VERDICT"), "0 ") << "it was asked to leave";
}

TEST(Crew, starts_a_lost_process_again_though_another_one_ended_with_0_in_the_middle_of_the_run) {
  Shown shown;
  const std::string again = shown.folder.path() + "/again";
  EXPECT_EQ(
      0, shown.run("echo begun > $TRADEWIND_VERDICT; test $TRADEWIND_ID = 1 && exit 0; sleep 0.3; test -e " +
                       again + " || { touch " + again + "; kill -9 $$; }; echo complete > $TRADEWIND_VERDICT",
                   two(), 5));
  EXPECT_THAT(shown.said, ElementsAre("process 1 ended with exit code 0; the run is not complete",
                                      "process 2 was ended by signal 9; starting it again"));
}

TEST(Crew, leaves_a_hangup_to_the_programs_that_nohup_started) {
  Shown shown;
  const auto before = std::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(0, shown.run("kill -HUP $PPID; kill -HUP $$; echo here", {{}}));
  EXPECT_THAT(shown.printed, ElementsAre("[1] here"));
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST(Crew, tells_its_processes_who_launched_them) {
  Shown shown;
  shown.run("test ${TRADEWIND_LAUNCHER%%:*} = $PPID && echo $TRADEWIND_LAUNCHER", {{}});
  EXPECT_THAT(shown.printed, ElementsAre("[1] " + host::name_of_this_process()));
}

TEST(Crew, passes_each_signal_on_as_it_came) {
  Shown shown;
  EXPECT_EQ(kGoesOn, shown.run("trap 'echo got USR1; exit 75' USR1; kill -USR1 $PPID; sleep 5 & wait", {{}}));
  EXPECT_THAT(shown.printed, ElementsAre("[1] got USR1"));
  EXPECT_EQ(kGoesOn, Shown().run("kill -TERM $PPID; sleep 5", {{}})) << "it had no handler yet";
  EXPECT_EQ(kGoesOn, Shown().run("trap 'exit 75' HUP; kill -HUP $PPID; sleep 5 & wait", {{}}));
  EXPECT_EQ(kGoesOn, Shown().run("kill -HUP $PPID; sleep 5", {{}}));
  EXPECT_EQ(130, Shown().run("kill -INT $PPID; sleep 5", {{}}));
}

TEST(Crew, stands_still_with_its_processes_until_it_is_continued) {
  const host::TemporaryFolder folder;
  const std::string at = folder.path();
  ASSERT_EQ(mkfifo((at + "/go").c_str(), 0600), 0);
  const pid_t tw = fork();  // whose parent could continue it, as a shell does
  if (tw == 0) {
    setpgid(0, 0);
    Shown shown;
    // Words of the shell alone: it waits without being stopped (vfork) while a command begins.
    _exit(shown.run("echo $$ > " + at + "/pid; kill -TSTP $PPID; read go < " + at + "/go", {{}}));
  }
  int status = 0;
  ASSERT_EQ(waitpid(tw, &status, WUNTRACED), tw);
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  const std::string pid = read_text_file(at + "/pid").value();
  const auto stands = [&] {
    const auto stat = read_text_file("/proc/" + pid.substr(0, pid.find('\n')) + "/stat");
    return stat && stat.value().find(") T ") != std::string::npos;
  };
  for (int look = 0; look < 500 && !stands(); ++look) poll(nullptr, 0, 10);
  EXPECT_TRUE(stands());
  kill(tw, SIGCONT);
  std::ofstream(at + "/go") << "go\n";
  ASSERT_EQ(waitpid(tw, &status, 0), tw);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Crew, whose_program_was_interrupted_before_it_joined_was_stopped_by_its_user) {
  const auto code = [](const std::string& before, const char* signal) {
    Shown shown;
    shown.must_join = true;
    return shown.run(before + "trap 'exit 1' INT TERM; kill -" + signal + " $PPID; sleep 5 & wait", {{}});
  };
  EXPECT_EQ(code("", "INT"), 130) << "as Python while it loads its modules";
  EXPECT_EQ(code("echo joining > $TRADEWIND_VERDICT; ", "INT"), 130);
  EXPECT_EQ(code("echo begun > $TRADEWIND_VERDICT; ", "INT"), 1) << "its program knows how it ended";
  EXPECT_EQ(code("", "TERM"), 1);
}

/// Each look at it is a second later.
class HastyClock final : public world::Clock {
 public:
  Instant now() override { return now_ += std::chrono::seconds(1); }

  std::int64_t unix_nanos() override { return 0; }

  void at(Instant, std::function<void()>) override {}

 private:
  Instant now_{};
};

TEST(Crew, leaves_a_peer_behind_a_wrapper_that_died_of_a_notice_its_time) {
  std::vector<std::string> printed, said;
  HastyClock clock;
  const std::string peer = "trap 'sleep 0.5; echo saved; exit 75' TERM; echo here; sleep 60 & wait";
  Crew crew(clock, {.words = {"sh", "-c", "sh -c \"" + peer + "\" & sleep 0.3; kill -HUP $PPID; wait"},
                    .environments = {{}},
                    .out = [&](const std::string& line) { printed.push_back(line); },
                    .say = [&](const std::string& line) { said.push_back(line); }});
  EXPECT_EQ(kGoesOn, crew.run().value());
  EXPECT_THAT(printed, ElementsAre("[1] here", "[1] saved"));
  EXPECT_TRUE(said.empty()) << "nothing was killed";
}

/// A crew that begins a run. Its programs write their event logs by hand.
struct Begun : Shown {
  explicit Begun(Script wanted) {
    begins = true;
    script = std::move(wanted);
    out = folder.path() + "/out";
  }

  /// Functions of sh: `round N` says that the peer begins a round, `run DIGEST` that it starts in this run
  /// and commits round 1 of it, `complete` that the run is.
  std::string program(const std::string& text) const {
    return R"(line() { echo '{"t":'$(cut -d' ' -f1 /proc/uptime)',"time":"2026-01-31T12:00:00.000Z",)"
           R"("peer":'$TRADEWIND_ID',"round":'$1',"phase":"'$2'"'$3'}' >> )" +
           out +
           R"(/events-$TRADEWIND_ID.jsonl; }
              round() { line $1 accumulate; echo begun > $TRADEWIND_VERDICT; }
              run() { line 0 start ',"digest":"'$1'","last_round":16'; line 1 commit; }
              complete() { echo complete > $TRADEWIND_VERDICT; }
)" + text;
  }

  /// Phases of the launcher's log, and whom they are about.
  std::vector<std::string> logged() const {
    std::vector<std::string> found;
    const auto log = monitor::read_event_log(out + "/" + monitor::event_log_name(PeerId{}));
    EXPECT_TRUE(log) << log.error().message;
    for (const monitor::LogEntry& entry : log.value())
      found.push_back(fmt::format("{} {} {}", name_of(entry.event.phase()), to_string(*entry.event.peer),
                                  entry.event.round));
    return found;
  }
};

TEST(Crew, kills_and_adds_processes_as_its_script_says_and_that_is_no_failure) {
  Begun crew(Script({Kill{.victim = PeerId{2}, .round = 3}}, {4}));
  EXPECT_EQ(0, crew.run(crew.program("test -z \"$NEW\" || { echo new $TRADEWIND_ID; exit 0; }; round 3; "
                                     "test $TRADEWIND_ID = 2 && sleep 60; sleep 0.3; round 4; sleep 0.3; "
                                     "complete"),
                        {{}, {}}, 5));
  EXPECT_THAT(crew.said,
              ElementsAre("round 3: process 2 is killed", "round 4: process 3 is started, which joins"));
  EXPECT_THAT(crew.printed, ElementsAre("[3] new 3"));
  EXPECT_THAT(crew.logged(), ElementsAre("start 1 0", "start 2 0", "kill 2 3", "start 3 4"));
}

TEST(Crew, kills_the_processes_of_a_process_with_it) {
  Begun crew(Script({Kill{.victim = PeerId{1}, .round = 1}}, {}));
  const std::string file = crew.folder.path() + "/pid";
  crew.run(crew.program("sleep 60 & echo $! > " + file + "; round 1; wait"), {{}});
  const std::string pid = read_text_file(file).value(),
                    stat = "/proc/" + pid.substr(0, pid.find('\n')) + "/stat";
  const auto lives = [&] {
    const auto state = read_text_file(stat);
    return state && state.value().find(") Z ") == std::string::npos;
  };
  for (int look = 0; look < 100 && lives(); ++look) poll(nullptr, 0, 10);
  EXPECT_FALSE(lives()) << "workers of torchrun are part of the peer";
}

TEST(Crew, stops_a_process_for_a_time) {
  using namespace std::chrono_literals;
  Begun crew(Script({}, {}, {Stop{.victim = {PeerId{1}}, .round = 1, .lasts = 300ms}}));
  const Instant began = crew.clock.now();
  EXPECT_EQ(0,
            crew.run(crew.program("round 1; sleep 0.1; test -e /proc/self && echo awake; complete"), {{}}));
  EXPECT_GE(crew.clock.now() - began, 300ms);
  EXPECT_THAT(crew.said, ElementsAre("round 1: process 1 stands still for 0.3 s"));
  EXPECT_THAT(crew.printed, ElementsAre("[1] awake"));
}

TEST(Crew, of_which_the_script_killed_all_has_failed_and_says_what_did_not_come_about) {
  Begun crew(Script({Kill{.victim = PeerId{1}, .round = 1}}, {9}));
  EXPECT_EQ(1, crew.run(crew.program("round 1; sleep 60"), {{}}));
  EXPECT_THAT(crew.said, ElementsAre("round 1: process 1 is killed",
                                     "--join 9 did not come about: the run was over before",
                                     "all processes were killed: none was left to finish the run"));
}

TEST(Crew, ends_a_process_that_is_on_its_way_when_the_run_is_over) {
  Begun crew(Script({}, {1}));
  EXPECT_EQ(0, crew.run(crew.program("test -z \"$NEW\" || { echo joining > $TRADEWIND_VERDICT; sleep 60; }; "
                                     "round 1; sleep 0.3; complete"),
                        {{}}));
  EXPECT_THAT(crew.said, ElementsAre("round 1: process 2 is started, which joins",
                                     "process 2 came too late: the run was over before it had the state"));
}

TEST(Crew, says_in_which_round_a_process_ended_with_0) {
  Begun crew{Script()};
  EXPECT_EQ(1, crew.run(crew.program("run 00aabbccddee; round 4; round 5"), {{}}));
  EXPECT_THAT(crew.said,
              ElementsAre("process 1 ended with exit code 0 in round 5 of 16; the run is not complete"));
  Begun other{Script()};
  EXPECT_EQ(1, other.run(other.program("round 5"), {{}}));
  EXPECT_THAT(other.said,
              ElementsAre("process 1 ended with exit code 0 in round 5; the run is not complete"));
}

TEST(Crew, gives_no_id_twice) {
  Begun first{Script()}, second{Script()};
  second.out = first.out;
  EXPECT_EQ(0, first.run(first.program("round 1; complete"), {{}, {}}));
  second.run(second.program("echo $TRADEWIND_ID; round 1; kill -9 $$"), {{}}, 1);
  EXPECT_THAT(second.printed, ElementsAre("[1] 3", "[1] 4"));
}

TEST(Crew, says_when_its_folder_has_logs_of_another_run) {
  Begun first{Script()}, again{Script()}, other{Script()};
  again.out = other.out = first.out;
  EXPECT_EQ(0, first.run(first.program("run 00aabbccddee"), {{}, {}}));
  EXPECT_EQ(0, again.run(again.program("run 00aabbccddee"), {{}}));
  EXPECT_TRUE(first.said.empty() && again.said.empty()) << "it goes on, as from a checkpoint";
  EXPECT_EQ(0, other.run(other.program("run 1122334455"), {{}, {}}));
  EXPECT_THAT(
      other.said,
      ElementsAre("--out " + first.out +
                  ": this run, 11223344, is another one than before (another "
                  "setting or model): events-1.jsonl, events-2.jsonl, events-3.jsonl of run 00aabbcc. "
                  "tw report, top and watch show the newest run alone; another --out keeps them apart"));
}

TEST(Crew, says_when_there_is_no_such_program) {
  std::vector<std::string> out;
  host::Loop clock;
  Crew crew(clock, {.words = {"no-such-program-here"},
                    .environments = {{}},
                    .out = [&](const std::string& line) { out.push_back(line); },
                    .say = [](const std::string&) {}});
  EXPECT_EQ(127, crew.run().value());
  EXPECT_THAT(out, ElementsAre(HasSubstr("no-such-program-here: cannot be started: No such file")));
}

}  // namespace
}  // namespace tw::launch
