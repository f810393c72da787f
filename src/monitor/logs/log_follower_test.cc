// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tw::monitor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kFollowedWall_ns = 1'767'225'600'000'000'000;

class LogFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "log_follower";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// since_start_s: by the monotonic clock of the writer's machine, which began at start_s.
  void write(std::uint64_t writer, double since_start_s, Round round, double start_s = 0, int part = 1) {
    write_event(writer, since_start_s, {.round = round}, start_s, part);
  }

  void write_event(std::uint64_t writer, double since_start_s, world::Event event, double start_s,
                   int part = 1) {
    LogEntry entry{PeerId{writer}, 0, std::move(event)};
    entry.event.at = Instant(from_seconds(since_start_s));
    entry.unix_nanos = kFollowedWall_ns + from_seconds(start_s + since_start_s).count();
    const std::string path = folder_ + "/" + event_log_name(PeerId{writer});
    std::ofstream(log_part_path(path, static_cast<std::uint64_t>(part)), std::ios::app)
        << to_json_line(entry) << '\n';
  }

  std::vector<Round> polled() {
    std::vector<Round> rounds;
    EXPECT_TRUE(follower_.look().ok());
    EXPECT_TRUE(follower_.each_new(to(rounds)).ok());
    return rounds;
  }

  std::vector<Round> all() {
    std::vector<Round> rounds;
    EXPECT_TRUE(follower_.each({}, to(rounds)).ok());
    return rounds;
  }

  static LogSource::Take to(std::vector<Round>& rounds) {
    return [&](const LogEntry& entry, std::size_t) { rounds.push_back(entry.event.round); };
  }

  std::string folder_ = "";
  LogFollower follower_{::testing::TempDir() + "log_follower"};
};

TEST_F(LogFollowerTest, gives_what_is_new_in_the_order_of_time) {
  EXPECT_THAT(polled(), IsEmpty());
  write(1, 1, 1);
  write(1, 3, 3);
  write(2, 2, 2);
  EXPECT_THAT(polled(), ElementsAre(1, 2, 3));
  EXPECT_EQ(follower_.logs(), 2U);
  EXPECT_THAT(polled(), IsEmpty());
  write(3, 5, 5);
  write(2, 4, 4);
  EXPECT_THAT(polled(), ElementsAre(4, 5));
}

TEST_F(LogFollowerTest, puts_logs_of_another_machine_on_the_time_line_of_the_first) {
  write(1, 100, 1);
  write(2, 7, 2, 94);  // it began 94 s later by the calendar: at 101 s
  EXPECT_THAT(polled(), ElementsAre(1, 2));
  write(2, 9, 4, 94);
  write(1, 102, 3);
  EXPECT_THAT(polled(), ElementsAre(3, 4));
}

TEST_F(LogFollowerTest, goes_on_where_parts_in_between_were_removed) {
  write(1, 1, 1);
  EXPECT_THAT(polled(), ElementsAre(1));
  write(1, 4, 4, 0, 4);
  EXPECT_THAT(polled(), ElementsAre(4));
  write(1, 5, 5, 0, 5);
  EXPECT_THAT(polled(), ElementsAre(5));
}

TEST_F(LogFollowerTest, gives_no_line_of_a_part_that_had_none_when_it_was_looked_at) {
  write(1, 1, 1);
  std::ofstream(folder_ + "/events-1.2.jsonl") << "{\"t\":2";
  ASSERT_TRUE(follower_.look());
  std::filesystem::remove(folder_ + "/events-1.2.jsonl");
  write(1, 2, 2, 0, 2);
  EXPECT_THAT(all(), ElementsAre(1));
  EXPECT_THAT(polled(), ElementsAre(1, 2));
}

TEST_F(LogFollowerTest, says_which_log_lost_lines_since_it_looked) {
  for (const int part : {1, 2, 3}) write(1, part, static_cast<Round>(part), 0, part);
  ASSERT_TRUE(follower_.look());
  EXPECT_THAT(all(), ElementsAre(1, 2, 3));
  std::filesystem::remove(folder_ + "/events-1.2.jsonl");
  std::vector<Round> rounds;
  const Status read = follower_.each({}, to(rounds));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, folder_ + "/events-1.jsonl changed while it was read; try again");
}

TEST_F(LogFollowerTest, puts_the_lines_after_a_restart_of_the_machine_behind_those_of_other_logs_before_it) {
  write(1, 500, 1);
  write(1, 501, 3);
  write(1, 4, 5, 526);
  write(2, 500.5, 2);
  write(2, 520, 4);
  write(2, 535, 6);
  EXPECT_THAT(polled(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(all(), ElementsAre(1, 2, 3, 4, 5, 6));
  write(1, 14, 8, 526);
  write(2, 538, 7);
  EXPECT_THAT(polled(), ElementsAre(7, 8));
}

TEST_F(LogFollowerTest, begins_a_time_line_of_its_own_for_another_run) {
  const auto start = [&](std::uint64_t writer, const char* run, double since_start_s, double start_s) {
    write_event(writer, since_start_s, {.fact = event::Start{.digest = run}}, start_s);
    write_event(writer, since_start_s + 1, {.round = 1, .fact = event::Accumulate{}}, start_s);
  };
  std::vector<Instant> times;
  const auto to_times = [&](const LogEntry& entry, std::size_t) { times.push_back(entry.event.at); };
  start(1, "aa", 100, 0);
  polled();
  start(2, "bb", 7, 200);
  ASSERT_TRUE(follower_.look());
  follower_.rewind();
  ASSERT_TRUE(follower_.each_new(to_times));
  EXPECT_EQ(follower_.run(), "bb");
  EXPECT_THAT(times, ElementsAre(Instant(from_seconds(7)), Instant(from_seconds(8))));
}

TEST_F(LogFollowerTest, says_what_is_missing_or_broken) {
  EXPECT_THAT(LogFollower(folder_ + "/none").look().error().message, HasSubstr("/none: No such file"));
  std::ofstream(folder_ + "/events-1.jsonl") << "{}\n";
  EXPECT_THAT(follower_.look().error().message, HasSubstr("events-1.jsonl:1:"));
}

TEST_F(LogFollowerTest, follows_a_single_log) {
  write(1, 1, 1);
  write(2, 2, 2);
  LogFollower one(folder_ + "/events-2.jsonl");
  ASSERT_TRUE(one.look());
  EXPECT_THAT(one.writers(), ElementsAre(PeerId{2}));
}

TEST_F(LogFollowerTest, gives_what_it_looked_at_as_often_as_it_is_asked) {
  write(1, 1, 1);
  write(2, 2, 2);
  ASSERT_TRUE(follower_.look());
  write(1, 3, 3);
  EXPECT_THAT(all(), ElementsAre(1, 2));
  EXPECT_THAT(all(), ElementsAre(1, 2));
  EXPECT_THAT(polled(), ElementsAre(1, 2, 3));
  EXPECT_THAT(polled(), IsEmpty());
  EXPECT_THAT(all(), ElementsAre(1, 2, 3));
  follower_.rewind();
  EXPECT_THAT(polled(), ElementsAre(1, 2, 3));
}

TEST_F(LogFollowerTest, goes_on_where_a_shorter_log_took_the_place_of_one) {
  write(1, 1, 1);
  write(1, 2, 2);
  EXPECT_THAT(polled(), ElementsAre(1, 2));
  std::filesystem::remove(folder_ + "/events-1.jsonl");
  write(1, 3, 3);
  EXPECT_THAT(polled(), ElementsAre(3));
}

TEST_F(LogFollowerTest, takes_whole_logs_of_a_folder_or_of_its_logs) {
  std::filesystem::create_directories(folder_ + "/up");
  EXPECT_THAT(LogFollower::of_whole_logs(folder_ + "/up").error().message, HasSubstr("no event log"));
  write(1, 1, 1);
  write(2, 2, 2);
  std::filesystem::create_directories(folder_ + "/up/logs");
  for (const char* name : {"/events-1.jsonl", "/events-2.jsonl"})
    std::filesystem::rename(folder_ + name, folder_ + "/up/logs" + name);
  const auto logs = LogFollower::of_whole_logs(folder_ + "/up");
  ASSERT_TRUE(logs) << logs.error().message;
  std::vector<Round> rounds;
  ASSERT_TRUE(logs.value().each(kAllPhases, to(rounds)));
  EXPECT_THAT(rounds, ElementsAre(1, 2));
}

}  // namespace
}  // namespace tw::monitor
