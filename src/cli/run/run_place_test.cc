// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_place.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host/system/environment.h"
#include "host/system/temporary_folder.h"

namespace tw::cli {
namespace {

TEST(CommandFor, a_run_names_the_folder_of_states_that_was_given) {
  EXPECT_EQ(command_for("status", "mnist", ""), "tw status mnist");
  EXPECT_EQ(command_for("down", "mnist", "/srv/my runs"), "tw down mnist --state '/srv/my runs'");
}

TEST(RunsFolder, is_nowhere_without_a_home) {
  const std::string home = host::environment_value("HOME"), state = host::environment_value("XDG_STATE_HOME");
  unsetenv("HOME");
  unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(runs_folder("").error().message,
            "HOME is not set, which has the folder of run states; set it, or give --state FOLDER");
  EXPECT_EQ(runs_folder("/srv/runs").value(), "/srv/runs");
  setenv("HOME", "/home/ann", 1);
  EXPECT_EQ(runs_folder("").value(), "/home/ann/.local/state/tradewind");
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(runs_folder("").value(), "/state/tradewind");
  state.empty() ? unsetenv("XDG_STATE_HOME") : setenv("XDG_STATE_HOME", state.c_str(), 1);
  home.empty() ? unsetenv("HOME") : setenv("HOME", home.c_str(), 1);
}

TEST(RunTokens, come_from_a_new_key_where_the_writer_of_the_old_one_was_killed) {
  const host::TemporaryFolder folder;
  std::ofstream(folder.path() + "/ca.key") << "half a k";
  const auto kept = make_tokens(folder.path(), "words", NewKey::if_none, "tw down words --state x");
  ASSERT_FALSE(kept.ok());
  EXPECT_NE(kept.error().message.find("/ca.crt is missing, and peers of run words have tokens of "),
            std::string::npos)
      << kept.error().message;
  EXPECT_NE(kept.error().message.find("or end the run (tw down words --state x) and"), std::string::npos)
      << kept.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/ca.key"));
  const auto made = make_tokens(folder.path(), "words", NewKey::if_none_whole, "");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/ca.crt"));
  std::filesystem::remove(folder.path() + "/ca.crt");
  EXPECT_FALSE(make_tokens(folder.path(), "words", NewKey::never, "").ok()) << "a key of the user's stays";
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/ca.key"));
}

TEST(Need, names_the_peers_that_are_not_started_again_and_the_command_that_shows_why) {
  launch::RunState state{.deployment = {.run = "words", .peers = {{.number = 1}, {.number = 2}}}};
  const std::vector<launch::PeerReport> reports = {
      {.number = 1, .state = launch::PeerState::done, .exit_code = 0},
      {.number = 2, .state = launch::PeerState::failed, .exit_code = launch::kNeedsPerson}};
  EXPECT_EQ(need_of(state, reports, "x"),
            "run words has ended; exit code 2 of p2: tw logs words --state x shows why");
}

}  // namespace
}  // namespace tw::cli
