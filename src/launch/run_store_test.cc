// SPDX-License-Identifier: Apache-2.0
#include "launch/run_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "host/system/temporary_folder.h"
#include "launch/command_run.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunState some_state() {
  RunState state{.engine = "ssh",
                 .plan_file = "/plans/PLAN.yaml",
                 .job_file = "/plans/job.yaml",
                 .next_number = 4,
                 .deployment = with_program(three_peers())};
  state.deployment.token.clear();
  state.deployment.anchor_token.clear();
  state.deployment.on = {{"partition", "spot"}};
  state.deployment.user.folders = {"out"};
  state.deployment.peers[1].restart = 2;
  state.deployment.peers[1].alternatives = {state.deployment.peers[0].machine};
  return state;
}

mode_t mode_of(const std::string& path) {
  struct stat facts {};

  EXPECT_EQ(stat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 0777;
}

TEST(RunStore, a_state_is_read_as_it_was_saved) {
  const host::TemporaryFolder folder;
  RunState state = some_state();
  state.deployment.folder = folder.path() + "/words";
  {
    auto store = RunStore::open_or_make(folder.path(), "words");
    ASSERT_TRUE(store.ok()) << store.error().message;
    EXPECT_FALSE(store.value().has_state());
    ASSERT_TRUE(store.value().save(state).ok());
  }
  const auto again = RunStore::open(folder.path(), "words");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value().state(), state);
  EXPECT_THAT(runs_in(folder.path()), ElementsAre("words"));
  EXPECT_EQ(mode_of(folder.path() + "/words"), 0700U);
}

TEST(RunStore, that_a_run_was_stopped_is_read_while_tw_down_holds_the_lock) {
  const host::TemporaryFolder folder;
  EXPECT_FALSE(is_stopped(folder.path(), "words")) << "no such run";
  auto store = RunStore::open_or_make(folder.path(), "words");
  RunState state = some_state();
  ASSERT_TRUE(store.value().save(state).ok());
  EXPECT_FALSE(is_stopped(folder.path(), "words"));
  state.stopped = true;
  ASSERT_TRUE(store.value().save(state).ok());
  EXPECT_TRUE(is_stopped(folder.path(), "words"));
}

TEST(RunStore, a_state_that_says_nothing_of_a_stop_was_not_stopped) {
  std::string text = to_json(some_state());
  const std::string key = " \"stopped\": false,\n";
  ASSERT_NE(text.find(key), std::string::npos);
  text.erase(text.find(key), key.size());
  const auto state = run_state_in("state.json", text);
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_FALSE(state.value().stopped);
}

TEST(RunStore, the_state_holds_no_token) {
  RunState state = some_state();
  state.deployment.token = kTestToken;
  state.deployment.anchor_token = kTestAnchorToken;
  EXPECT_EQ(to_json(state), to_json(some_state()));
}

TEST(RunStore, damaged_and_foreign_content_is_one_error_and_is_left_alone) {
  const std::string good = to_json(some_state());
  for (const std::string& bad :
       {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
        std::string(R"({"tradewind_run": 9})"), std::string(R"({"tradewind_run": 1, "engine": 3})")}) {
    const auto state = run_state_in("/runs/words/state.json", bad);
    ASSERT_FALSE(state.ok()) << bad;
    EXPECT_TRUE(state.error().message.starts_with("/runs/words/state.json: ")) << state.error().message;
    EXPECT_EQ(state.error().message.find('\n'), std::string::npos);
  }
  const host::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/words");
  std::ofstream(folder.path() + "/words/thesis.tex") << "dear";
  const auto store = RunStore::open_or_make(folder.path(), "words");
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message, HasSubstr("but thesis.tex is in it"));
}

TEST(RunStore, an_unknown_run_is_told_with_those_that_are_known) {
  const host::TemporaryFolder folder;
  {
    auto store = RunStore::open_or_make(folder.path(), "words");
    ASSERT_TRUE(store.value().save(some_state()).ok());
  }
  EXPECT_THAT(RunStore::open(folder.path(), "wrods").error().message, HasSubstr("there are: words"));
  EXPECT_THAT(RunStore::open(folder.path(), "../words").error().message, HasSubstr("no run of this name"));
}

TEST(RunStore, a_secret_is_a_file_of_its_owner_alone_from_the_beginning) {
  const host::TemporaryFolder folder;
  const std::string path = folder.path() + "/p1/token";
  ASSERT_TRUE(write_with_folder(path, "secret", 0600).ok());
  EXPECT_EQ(mode_of(path), 0600U);
  std::filesystem::permissions(path, std::filesystem::perms::all);
  ASSERT_TRUE(write_with_folder(path, "other", 0600).ok());
  EXPECT_EQ(mode_of(path), 0600U) << "a file that others could read is replaced, not written into";
}

TEST(CommandRun, gives_both_outputs_the_exit_code_and_takes_its_stdin) {
  const auto output = run_command({.words = {"sh", "-c", "cat; echo bad >&2; exit 3"}, .input = "told"});
  ASSERT_TRUE(output.ok()) << output.error().message;
  EXPECT_EQ(output.value().text, "told");
  EXPECT_EQ(output.value().errors, "bad\n");
  EXPECT_EQ(output.value().exit_code, 3);
}

TEST(CommandRun, does_not_wait_for_what_a_program_leaves_behind) {
  const auto output = run_command({.words = {"sh", "-c", "setsid -f sleep 60; echo $$"}});
  ASSERT_TRUE(output.ok());
  EXPECT_FALSE(output.value().text.empty());
}

TEST(CommandRun, starts_nothing_beside_a_folder_that_is_not_the_users_alone) {
  const host::TemporaryFolder around;
  const std::string own = around.path() + "/own", link = around.path() + "/link";
  EXPECT_TRUE(run_command({.words = {"true"}, .own_folder = own}));
  std::filesystem::create_symlink(own, link);
  const auto output = run_command({.words = {"true"}, .own_folder = link});
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr(link + ": expected a folder that only you can enter"));
}

TEST(CommandRun, a_program_that_is_missing_is_an_error) {
  const auto output = run_command({.words = {"no-such-program-of-tw"}});
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr("no-such-program-of-tw: no such program on this machine"));
}

Command of_peer(std::uint32_t peer, const char* script) {
  return {.words = {"sh", "-c", script}, .peer = peer};
}

TEST(CommandRun, a_peer_that_fails_keeps_its_later_commands_back_and_no_other_peer) {
  const Batch batch = run_all({of_peer(1, "echo a"), of_peer(2, "echo why >&2; exit 9"), of_peer(1, "echo b"),
                               of_peer(2, "echo never")});
  ASSERT_EQ(batch.failures.size(), 1U);
  EXPECT_EQ(batch.failures[0].message, "sh -c 'echo why >&2; exit 9': exit code 9: why");
  std::string text;
  for (const Output& output : batch.outputs) text += output.text;
  EXPECT_EQ(text, "a\nb\n");
}

TEST(CommandRun, nothing_follows_a_failure_of_the_run) {
  const Batch batch = run_all({of_peer(0, "exit 1"), of_peer(1, "echo a")});
  EXPECT_EQ(batch.failures.size(), 1U);
  EXPECT_EQ(batch.outputs.size(), 1U);
}

}  // namespace
}  // namespace tw::launch
