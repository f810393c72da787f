// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/newest_run.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "monitor/logs/log_follower.h"

namespace tw::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What is read of the newest run.
struct RunLogs {
  std::string run;
  std::map<std::size_t, std::vector<LogEntry>> logs;
  std::string left_out;
};

class RunsOfAFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "tw-runs-" + std::to_string(getpid());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }

  void TearDown() override { std::filesystem::remove_all(folder); }

  /// A line of the log of this name, a second after the one before.
  void write(const std::string& name, std::uint64_t writer, world::Event event) {
    event.at = Instant(std::chrono::seconds(++second));
    const std::int64_t unix_nanos = 1'800'000'000'000'000'000 + second * 1'000'000'000LL;
    std::ofstream(folder + "/" + name, std::ios::app)
        << to_json_line({PeerId{writer}, unix_nanos, event}) << "\n";
  }

  /// A peer starts in a run and commits a round of it.
  void take_part(std::uint64_t writer, const std::string& run, Round round) {
    start(writer, run);
    write(event_log_name(PeerId{writer}), writer, {.round = round, .fact = event::Commit{}});
  }

  void start(std::uint64_t writer, const std::string& run) {
    write(event_log_name(PeerId{writer}), writer, {.fact = event::Start{.digest = run}});
  }

  RunLogs newest() const {
    const auto logs = LogFollower::of_whole_logs(folder);
    EXPECT_TRUE(logs) << logs.error().message;
    if (!logs) return {};
    RunLogs found{.run = logs.value().run(), .logs = {}, .left_out = logs.value().left_out()};
    const Status read = logs.value().each(
        kAllPhases, [&](const LogEntry& entry, std::size_t log) { found.logs[log].push_back(entry); });
    EXPECT_TRUE(read) << read.error().message;
    return found;
  }

  /// "writer:round" of each event, by log.
  static std::vector<std::string> events_of(const RunLogs& run) {
    std::vector<std::string> events;
    for (const auto& [number, log] : run.logs)
      for (const LogEntry& entry : log)
        events.push_back(to_string(entry.writer) + ":" + std::to_string(entry.event.round));
    return events;
  }

  std::string folder;
  int second = 0;
};

TEST_F(RunsOfAFolder, are_told_apart_and_the_newest_is_taken) {
  take_part(1, "aa11111111", 5);
  take_part(2, "aa11111111", 5);
  EXPECT_EQ(newest().left_out, "");
  take_part(3, "bb22222222", 1);
  take_part(4, "bb22222222", 1);
  EXPECT_EQ(newest().run, "bb22222222");
  EXPECT_THAT(events_of(newest()), ElementsAre("3:0", "3:1", "4:0", "4:1"));
  EXPECT_EQ(
      newest().left_out,
      "the logs are of 2 runs; this is the newest, bb222222; left out: events-1.jsonl, events-2.jsonl of "
      "run aa111111");
}

TEST_F(RunsOfAFolder, may_go_on_after_another_one) {
  take_part(1, "aa", 5);
  take_part(2, "bb", 1);
  take_part(3, "aa", 6);
  EXPECT_THAT(events_of(newest()), ElementsAre("1:0", "1:5", "3:0", "3:6"));
  EXPECT_THAT(newest().left_out, HasSubstr("left out: events-2.jsonl of run bb"));
}

TEST_F(RunsOfAFolder, may_share_a_log) {
  take_part(1, "aa", 5);
  take_part(1, "bb", 1);
  EXPECT_THAT(events_of(newest()), ElementsAre("1:0", "1:1"));
  EXPECT_THAT(newest().left_out, HasSubstr("left out: a part of events-1.jsonl of run aa"));
}

TEST_F(RunsOfAFolder, are_named_by_the_files_and_not_by_their_writers) {
  take_part(1, "bb", 5);
  std::filesystem::rename(folder + "/events-1.jsonl", folder + "/events-7.jsonl");
  take_part(1, "aa", 5);
  EXPECT_THAT(newest().left_out, HasSubstr("events-7.jsonl of run bb"));
}

TEST_F(RunsOfAFolder, are_none_of_a_peer_that_was_refused_or_of_logs_that_name_none) {
  take_part(1, "aa", 5);
  start(2, "bb");
  take_part(3, "", 5);
  EXPECT_EQ(newest().run, "aa");
  EXPECT_EQ(newest().logs.size(), 3U);
  EXPECT_EQ(newest().left_out, "");
}

TEST_F(RunsOfAFolder, have_one_log_of_their_launcher) {
  const auto kill = [&](std::uint64_t peer) {
    write("events-local.jsonl", 0, {.peer = PeerId{peer}, .fact = event::Kill{}});
  };
  take_part(1, "aa", 5);
  kill(1);
  take_part(2, "bb", 1);
  kill(2);
  kill(3);
  const RunLogs run = newest();
  ASSERT_EQ(run.logs.size(), 2U);
  std::vector<PeerId> killed;
  for (const LogEntry& entry : run.logs.rbegin()->second) killed.push_back(*entry.event.peer);
  EXPECT_THAT(killed, ElementsAre(PeerId{2}, PeerId{3}));
}

TEST_F(RunsOfAFolder, that_are_left_out_are_not_missing) {
  take_part(1, "aa", 5);
  take_part(1, "bb", 1);
  write("events-1.2.jsonl", 1, {.round = 1, .fact = event::Log{.part = 2, .logged = 4}});
  const RunLogs run = newest();
  ASSERT_EQ(run.logs.size(), 1U);
  EXPECT_EQ(run.logs.begin()->second.back().event.as<event::Log>()->logged, 2U);
}

TEST_F(RunsOfAFolder, that_are_many_are_not_all_named) {
  for (std::uint64_t peer = 1; peer <= 10; ++peer) take_part(peer, "aa", 5);
  take_part(11, "bb", 1);
  EXPECT_THAT(newest().left_out, HasSubstr(" of run aa and 2 more"));
}

TEST_F(RunsOfAFolder, have_names_that_make_no_line) {
  take_part(1, "a\nb", 5);
  take_part(2, "b\nc", 5);
  EXPECT_THAT(newest().left_out, HasSubstr("the newest, b\\nc; left out: events-1.jsonl of run a\\nb"));
}

TEST_F(RunsOfAFolder, are_found_by_their_commits_whatever_else_stands_there) {
  EXPECT_EQ(runs_in(folder + "/none").run(), "");
  start(1, "aa");
  EXPECT_EQ(runs_in(folder).run(), "");
  std::ofstream(folder + "/events-1.jsonl", std::ios::app) << "{\"phase\":\"start\n";
  std::filesystem::create_directory(folder + "/events-9.jsonl");
  take_part(2, "bb", 1);
  EXPECT_EQ(runs_in(folder).run(), "bb");
  EXPECT_EQ(runs_in(folder).others_than("bb"), "");
  EXPECT_EQ(runs_in(folder).others_than("aa"), "events-2.jsonl of run bb");
}

}  // namespace
}  // namespace tw::monitor
