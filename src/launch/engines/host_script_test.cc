// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/host_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text/text_file.h"
#include "host/system/temporary_folder.h"
#include "launch/command_run.h"
#include "launch/run_store.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using testing::HasSubstr;

/// Peers that are small scripts, started on this machine as real ones are.
class HostScripts : public testing::Test {
 protected:
  void SetUp() override {
    deployment_ = three_peers();
    places_ = {shell_word(folder() + "/a tw"), shell_word(folder() + "/run 1"),
               shell_word(folder() + "/out")};
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
  EXPECT_THAT(file("log"), HasSubstr("--id 3000\n"));
  EXPECT_THAT(file("log"), HasSubstr("--id 3001\n")) << "the log goes on";
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
