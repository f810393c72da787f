// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_place.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "host/system/temporary_folder.h"

namespace tw::cli {
namespace {

TEST(CommandFor, a_run_names_the_folder_of_states_that_was_given) {
  EXPECT_EQ(command_for("status", "mnist", ""), "tw status mnist");
  EXPECT_EQ(command_for("down", "mnist", "/srv/my runs"), "tw down mnist --state '/srv/my runs'");
}

TEST(RunTokens, come_from_a_new_key_where_the_writer_of_the_old_one_was_killed) {
  const host::TemporaryFolder folder;
  std::ofstream(folder.path() + "/ca.key") << "half a k";
  const auto kept = make_tokens(folder.path(), "words", NewKey::if_none);
  ASSERT_FALSE(kept.ok());
  EXPECT_NE(kept.error().message.find("/ca.crt is missing, and peers of run words have tokens of "),
            std::string::npos)
      << kept.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/ca.key"));
  const auto made = make_tokens(folder.path(), "words", NewKey::if_none_whole);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/ca.crt"));
  std::filesystem::remove(folder.path() + "/ca.crt");
  EXPECT_FALSE(make_tokens(folder.path(), "words", NewKey::never).ok()) << "a key of the user's stays";
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/ca.key"));
}

}  // namespace
}  // namespace tw::cli
