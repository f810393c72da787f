// SPDX-License-Identifier: Apache-2.0
#include "launch/run_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "host/system/temporary_folder.h"
#include "launch/command_run.h"
#include "launch/held_signals.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using namespace std::chrono_literals;
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
  state.deployment.founder = 3;
  state.deployment.peers[1].restart = 2;
  state.deployment.peers[2].untried = true;
  state.deployment.peers[1].started_unix_s = 1'800'000'000;
  state.deployment.peers[1].starts = 5;
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

TEST(RunStore, that_a_run_is_stopped_is_read_while_tw_down_holds_the_lock) {
  const host::TemporaryFolder folder;
  EXPECT_EQ(stop_state_of(folder.path(), "words"), StopState::none) << "no such run";
  auto store = RunStore::open_or_make(folder.path(), "words");
  RunState state = some_state();
  for (const StopState stop : {StopState::none, StopState::stopping, StopState::stopped}) {
    state.stop = stop;
    ASSERT_TRUE(store.value().save(state).ok());
    EXPECT_EQ(stop_state_of(folder.path(), "words"), stop);
  }
}

TEST(RunStore, a_state_that_says_nothing_of_a_stop_or_a_start_had_none) {
  std::string text = to_json(some_state());
  for (const std::string key : {" \"stopped\": false,\n", " \"stopping\": false,\n", "  \"founder\": 3,\n",
                                ",\n    \"started_unix_s\": 1800000000", ",\n    \"starts\": 5"}) {
    ASSERT_NE(text.find(key), std::string::npos) << key;
    text.erase(text.find(key), key.size());
  }
  const auto state = run_state_in("state.json", text);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state.value().stop, StopState::none);
  EXPECT_EQ(state.value().deployment.peers[1].started_unix_s, 0);
  EXPECT_EQ(state.value().deployment.peers[1].starts, 0U);
  EXPECT_EQ(state.value().deployment.founder, 0U);
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
  const mode_t mode = mode_of(folder.path() + "/words");
  const auto store = RunStore::open_or_make(folder.path(), "words");
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message, HasSubstr("but thesis.tex is in it"));
  EXPECT_EQ(mode_of(folder.path() + "/words"), mode);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/words/state.lock"));
}

TEST(RunStore, a_file_that_cannot_be_looked_at_is_no_state) {
  const host::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/words");
  std::filesystem::create_symlink("state.json", folder.path() + "/words/state.json");
  EXPECT_THAT(RunStore::open_or_make(folder.path(), "words").error().message,
              HasSubstr("but state.json is in it"));
  EXPECT_THAT(RunStore::open(folder.path(), "words").error().message, HasSubstr("no run of this name"));
}

TEST(RunStore, a_folder_whose_first_command_was_killed_is_of_that_run) {
  const host::TemporaryFolder folder;
  {
    const auto killed = RunStore::open_or_make(folder.path(), "words");
    ASSERT_TRUE(killed.ok()) << killed.error().message;
    std::ofstream(folder.path() + "/words/ca.key") << "a key, and no state yet";
  }
  auto store = RunStore::open_or_make(folder.path(), "words");
  ASSERT_TRUE(store.ok()) << store.error().message;
  EXPECT_FALSE(store.value().has_state());
  EXPECT_TRUE(store.value().save(some_state()).ok());
}

TEST(RunStore, nothing_is_left_of_a_run_that_was_not_saved) {
  const host::TemporaryFolder folder;
  { ASSERT_TRUE(RunStore::open_or_make(folder.path(), "words").ok()); }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/words"));
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

/// Not as a zombie that nobody waits for.
bool goes_on(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return !text.empty() && text.find(") Z") == std::string::npos;
}

Command of_peer(std::uint32_t peer, const char* script) {
  return {.words = {"sh", "-c", script}, .peer = peer};
}

TEST(CommandRun, a_peer_that_fails_keeps_its_later_commands_back_and_no_other_peer) {
  const Batch batch = run_all({of_peer(1, "echo a"), of_peer(2, "echo why >&2; exit 9"), of_peer(1, "echo b"),
                               of_peer(2, "echo never")});
  ASSERT_EQ(batch.failures.size(), 1U);
  EXPECT_EQ(batch.failures[0].message, "p2: sh -c 'echo why >&2; exit 9': exit code 9: why");
  std::string text;
  for (const Output& output : batch.outputs) text += output.text;
  EXPECT_EQ(text, "a\nb\n");
}

TEST(CommandRun, a_message_names_the_client_of_a_script) {
  Command script = of_peer(2, "echo Forbidden >&2; exit 1");
  script.client = "kubectl";
  const Batch batch = run_all({script});
  ASSERT_EQ(batch.failures.size(), 1U);
  EXPECT_EQ(batch.failures[0].message, "p2: kubectl: exit code 1: Forbidden");
}

TEST(CommandRun, a_command_that_is_late_ends_with_its_process_group) {
  Command hangs{.words = {"sh", "-c", "sleep 600 & echo $!; wait"}, .client = "kubectl", .limit = 200ms};
  const Batch batch = run_all({hangs});
  ASSERT_EQ(batch.failures.size(), 1U);
  EXPECT_EQ(batch.failures[0].message, "kubectl did not answer within 0.2 s");
  EXPECT_EQ(batch.failures[0].why, Batch::Why::late);
  ASSERT_EQ(batch.outputs.size(), 1U);
  EXPECT_TRUE(batch.outputs[0].is_late);
  EXPECT_FALSE(goes_on(std::stoi(batch.outputs[0].text))) << "what it started is gone, too";
}

TEST(CommandRun, a_signal_ends_the_commands_under_way_and_then_comes_into_effect) {
  const host::TemporaryFolder folder;
  const std::string pid_file = folder.path() + "/pid";
  const std::string script = "echo $$ >" + pid_file + "; kill -INT $PPID; sleep 600";
  const pid_t program = fork();
  if (program == 0) {
    run_all({of_peer(1, script.c_str()), of_peer(1, ("rm " + pid_file).c_str())});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(program, &status, 0), program);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  std::ifstream file(pid_file);
  pid_t command = 0;
  ASSERT_TRUE(file >> command) << "nothing follows what was interrupted";
  EXPECT_FALSE(goes_on(command));
}

TEST(CommandRun, a_signal_of_a_look_is_kept_and_nothing_new_starts_in_the_rest_of_it) {
  const host::TemporaryFolder folder;
  const std::string file = folder.path() + "/second";
  const pid_t program = fork();
  if (program == 0) {
    {
      const HeldEndSignals held;
      run_all({of_peer(1, "kill -INT $PPID; exec sleep 600")});
      const Batch second = run_all({of_peer(1, ("touch " + file).c_str())});
      if (second.failures.size() != 1 || second.failures[0].why != Batch::Why::interrupted) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(program, &status, 0), program);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(HeldEndSignals, a_second_ctrl_c_insists_and_two_signals_at_once_do_not) {
  const auto ignore_later = [](int) {};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, ignore_later);
  {
    const HeldEndSignals held;
    EXPECT_FALSE(HeldEndSignals::came());
    for (const int signal : {SIGTERM, SIGHUP, SIGINT}) std::raise(signal);
    EXPECT_TRUE(HeldEndSignals::came());
    EXPECT_FALSE(HeldEndSignals::insist());
    std::raise(SIGINT);
    EXPECT_TRUE(HeldEndSignals::insist());
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
}

TEST(CommandRun, an_exit_code_that_nobody_gets_is_not_0) {
  std::signal(SIGCHLD, SIG_IGN);
  const auto output = run_command({.words = {"true"}});
  std::signal(SIGCHLD, SIG_DFL);
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr("true: its exit code is lost"));
}

TEST(CommandRun, a_question_that_is_asked_again_when_it_is_late_may_be_answered_then) {
  const host::TemporaryFolder folder;
  const std::string script =
      "if mkdir " + folder.path() + "/asked 2>/dev/null; then exec sleep 600; fi; echo yes";
  const Batch batch = run_all({{.words = {"sh", "-c", script}, .limit = 300ms, .again_when_late = true}});
  EXPECT_TRUE(batch.failures.empty());
  ASSERT_EQ(batch.outputs.size(), 1U);
  EXPECT_EQ(batch.outputs[0].text, "yes\n");
}

TEST(CommandRun, others_go_on_after_a_failure_that_is_not_theirs) {
  Command late{.words = {"sleep", "600"}, .limit = 50ms, .others_go_on = true};
  const Batch batch = run_all({late, of_peer(0, "echo a")});
  ASSERT_EQ(batch.failures.size(), 1U);
  EXPECT_EQ(batch.failures[0].why, Batch::Why::late);
  ASSERT_EQ(batch.outputs.size(), 2U);
  EXPECT_EQ(batch.outputs[1].text, "a\n");
}

TEST(RunStore, a_store_that_is_free_is_opened_without_waiting) {
  const host::TemporaryFolder folder;
  EXPECT_FALSE(RunStore::open_if_free(folder.path(), "words").ok()) << "no such run";
  {
    auto made = RunStore::open_or_make(folder.path(), "words");
    ASSERT_TRUE(made.ok() && made.value().save(some_state()).ok());
  }
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    const auto held = RunStore::open(folder.path(), "words");
    (void)!write(ready[1], held.ok() ? "y" : "n", 1);
    pause();
  }
  char said = 0;
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  const auto busy = RunStore::open_if_free(folder.path(), "words");
  ASSERT_TRUE(busy.ok()) << busy.error().message;
  EXPECT_FALSE(busy.value().has_value());
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  const auto free = RunStore::open_if_free(folder.path(), "words");
  ASSERT_TRUE(free.ok()) << free.error().message;
  ASSERT_TRUE(free.value().has_value());
  EXPECT_EQ(free.value()->state().engine, "ssh");
}

TEST(CommandRun, nothing_follows_a_failure_of_the_run) {
  const Batch batch = run_all({of_peer(0, "exit 1"), of_peer(1, "echo a")});
  EXPECT_EQ(batch.failures.size(), 1U);
  EXPECT_EQ(batch.outputs.size(), 1U);
}

}  // namespace
}  // namespace tw::launch
