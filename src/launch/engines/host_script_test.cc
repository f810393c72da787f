// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/host_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text/text_file.h"
#include "host/system/temporary_folder.h"
#include "launch/command_run.h"
#include "launch/engines/program_script.h"
#include "launch/run_store.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Peers that are small scripts, started on this machine as real ones are.
class HostScripts : public testing::Test {
 protected:
  void SetUp() override {
    deployment_ = three_peers();
    places_ = {shell_word(folder() + "/a tw"), shell_word(folder() + "/run 1"),
               shell_word(folder() + "/out")};
    std::filesystem::create_directories(folder() + "/run 1/program");
    set_variables();
  }

  void set_variables() const {
    ASSERT_TRUE(write_with_folder(folder() + "/run 1/p3/env", variables_file(deployment_.user), 0600).ok());
  }

  void TearDown() override { run(stop_script(peer(), places_, std::chrono::seconds(0))); }

  std::string folder() const { return folder_.path(); }

  const PeerJob& peer() const { return deployment_.peers[2]; }

  /// What `tw` does.
  void program(const std::string& body) const {
    ASSERT_TRUE(write_with_folder(folder() + "/a tw", "#!/bin/sh\n" + body, 0755).ok());
  }

  std::string run(const std::string& script) const {
    const auto output = run_command({.words = {"sh", "-s"}, .input = script});
    EXPECT_TRUE(output.ok() && output.value().exit_code == 0) << output.value().errors;
    return output.value().text;
  }

  void set(std::string setting) { deployment_.settings.push_back(std::move(setting)); }

  void start() const { run(start_script(deployment_, peer(), places_)); }

  PeerReport state() const {
    const auto report = state_in(run(state_script(peer(), places_)));
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.value();
  }

  /// Until its process has ended.
  PeerReport end() const {
    PeerReport report = state();
    while (report.state == PeerState::running) report = state();
    return report;
  }

  std::string file(const std::string& name) const {
    return read_text_file(folder() + "/run 1/p3/" + name).value();
  }

  host::TemporaryFolder folder_;
  Deployment deployment_;
  HostPlaces places_;
};

TEST_F(HostScripts, a_peer_that_was_never_started_is_absent_and_stopping_it_is_no_error) {
  EXPECT_EQ(state().state, PeerState::absent);
  run(stop_script(peer(), places_, std::chrono::seconds(5)));
}

TEST_F(HostScripts, a_peer_runs_apart_gets_an_id_of_its_own_and_starts_once) {
  program("echo \"$@\"\ntrap 'exit 75' TERM\nwhile :; do sleep 0.02; done\n");
  start();
  const PeerReport first = state();
  EXPECT_EQ(first.state, PeerState::running);
  start();
  EXPECT_EQ(state(), first) << "it was left alone";
  run(stop_script(peer(), places_, std::chrono::seconds(20)));
  EXPECT_EQ(state().state, PeerState::left);
  EXPECT_EQ(state().exit_code, 75);
  start();
  EXPECT_EQ(state().state, PeerState::running);
  EXPECT_EQ(state().restarts, 1U);
  run(stop_script(peer(), places_, std::chrono::seconds(20)));
  EXPECT_THAT(file("log"), HasSubstr("--id 3000 -- python3 train.py\n"));
  EXPECT_THAT(file("log"), HasSubstr("--id 3001 -- python3 train.py\n")) << "the log goes on";
}

TEST_F(HostScripts, a_machine_that_lost_its_disk_brings_no_id_back) {
  program("echo \"$@\"\nexit 3\n");
  deployment_.peers[2].starts = 2;
  start();
  EXPECT_EQ(end().restarts, 2U);
  EXPECT_THAT(file("log"), AllOf(HasSubstr("--id 3002 "), Not(HasSubstr("--id 3000 "))));
  start();
  EXPECT_EQ(end().restarts, 3U) << "the machine knows of more starts";
  EXPECT_THAT(file("log"), HasSubstr("--id 3003 "));
}

TEST_F(HostScripts, a_peer_that_was_told_to_go_is_leaving) {
  program("while :; do sleep 0.02; done\n");
  start();
  ASSERT_EQ(state().state, PeerState::running);
  std::ofstream(folder() + "/out/events-3000.jsonl")
      << R"({"t":1,"peer":3000,"round":2,"phase":"notice","cause":"at_risk","why":"aws"})"
      << "\n";
  EXPECT_EQ(state().state, PeerState::running) << "it may stay";
  std::ofstream(folder() + "/out/events-3000.jsonl", std::ios::app)
      << R"({"t":1,"peer":3000,"round":2,"phase":"notice","cause":"preempt","why":"aws"})"
      << "\n";
  EXPECT_EQ(state().state, PeerState::leaving);
}

TEST_F(HostScripts, a_setting_may_hold_the_line_that_ends_a_script) {
  set("name=a\nEND\nexit 1");
  program("printf '%s\\n' \"$@\"\n");
  start();
  EXPECT_EQ(end().state, PeerState::done);
  EXPECT_THAT(file("log"), HasSubstr("name=a\nEND\nexit 1\n"));
}

/// A user's program.
class ProgramScripts : public HostScripts {
 protected:
  void SetUp() override {
    HostScripts::SetUp();
    deployment_.user.command = {"sh", "a b", "it's", "\"$HOME\" `id`", "two\nlines", "", "OUT", "--id"};
    program(
        "if [ \"$1\" = --version ]; then exit 0; fi\nfor w; do printf '<%s>\\n' \"$w\"; done\npwd\n"
        "echo \"$KEY\"\n");
  }

  /// How it ends: the last line of stderr, or "".
  std::string ready() const {
    const auto output = run_command({.words = {"sh", "-s"},
                                     .input = ready_script(deployment_, peer(), places_, "gpu2"),
                                     .says_why = true});
    EXPECT_TRUE(output.ok());
    return output.value().errors;
  }
};

TEST_F(ProgramScripts, the_words_of_a_command_reach_it_unchanged_with_its_variables_in_its_folder) {
  deployment_.user.env = {{"KEY", "it's $a\nsecret"}};
  set_variables();
  start();
  EXPECT_EQ(end().state, PeerState::done);
  EXPECT_THAT(file("log"),
              HasSubstr("<--id>\n<3000>\n<-->\n<sh>\n<a b>\n<it's>\n<\"$HOME\" `id`>\n<two\nlines>"
                        "\n<>\n<OUT>\n<--id>\n" +
                        folder() + "/run 1/program\nit's $a\nsecret\n"));
  EXPECT_THAT(file("log"), HasSubstr("<run>\n<" + folder() + "/run 1/run.yaml>\n<--token>\n<@" + folder() +
                                     "/run 1/p3/token>\n"));
  EXPECT_THAT(file("run.sh"), Not(HasSubstr("secret")));
}

TEST_F(ProgramScripts, empty_folders_are_there_before_setup_runs) {
  deployment_.user.folders = {"my logs/a", "out"};
  deployment_.user.setup = {"test -d out && test -d 'my logs/a'"};
  EXPECT_EQ(ready(), "");
  EXPECT_TRUE(std::filesystem::is_directory(folder() + "/run 1/program/out"));
}

TEST_F(ProgramScripts, setup_runs_once_and_its_failure_names_machine_line_and_exit_code) {
  deployment_.user.setup = {"echo one >>../count", "echo $KEY said; exit 3"};
  deployment_.user.setup_key = "a";
  EXPECT_EQ(ready(), "gpu2: line 2 of program.setup (echo $KEY said; exit 3) ended with exit code 3\n");
  EXPECT_THAT(file("log"), HasSubstr("\nsaid\n")) << "its output";
  deployment_.user.setup.pop_back();
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(ready(), "");
  deployment_.user.setup_key = "b";
  EXPECT_EQ(ready(), "");
  EXPECT_EQ(read_text_file(folder() + "/run 1/count").value(), "one\none\none\n");
}

TEST_F(ProgramScripts, what_a_machine_lacks_is_said_before_anything_starts) {
  deployment_.user.command = {"no-such-python", "train.py"};
  EXPECT_EQ(ready(),
            "gpu2: no-such-python: no such program there: install it, or add a line to program.setup\n");
  ASSERT_TRUE(write_with_folder(folder() + "/run 1/program/bin/python3",
                                "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n", 0755)
                  .ok());
  ASSERT_TRUE(write_with_folder(folder() + "/run 1/program/train.py",
                                "import no_such_package.part, os\nfrom beside import x\n", 0644)
                  .ok());
  std::ofstream(folder() + "/run 1/program/beside.py");
  deployment_.user.command = {"bin/python3", "-u", "train.py"};
  EXPECT_THAT(ready(),
              AllOf(HasSubstr("gpu2: bin/python3 there has no no_such_package"),
                    HasSubstr(": install it, or add a line to program.setup\n"), Not(HasSubstr("beside"))));
  std::ofstream(folder() + "/run 1/program/train.py") << "import\n";
  EXPECT_EQ(ready(), "gpu2: bin/python3 cannot be used: SyntaxError: invalid syntax\n");
}

TEST_F(HostScripts, how_it_ended_is_written_down) {
  program("exit 0\n");
  start();
  EXPECT_EQ(end().state, PeerState::done);
  program("exit 3\n");
  start();
  EXPECT_EQ(end().exit_code, 3);
}

TEST_F(HostScripts, whoever_does_not_leave_in_time_is_killed) {
  program("trap '' TERM\nwhile :; do sleep 0.02; done\n");
  start();
  run(stop_script(peer(), places_, std::chrono::seconds(0)));
  EXPECT_EQ(state().exit_code, 137);
}

TEST_F(HostScripts, the_process_id_of_another_process_is_not_its_own) {
  program("exit 0\n");
  start();
  end();
  std::filesystem::remove(folder() + "/run 1/p3/exit");
  std::ofstream(folder() + "/run 1/p3/pid") << getpid() << " 1\n";
  EXPECT_EQ(state().state, PeerState::failed) << "after a reboot ids come again";
  run(stop_script(peer(), places_, std::chrono::seconds(0)));
}

}  // namespace
}  // namespace tw::launch
