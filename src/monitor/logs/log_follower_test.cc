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
    LogEntry entry{PeerId{writer}, 0, {.at = Instant(from_seconds(since_start_s)), .round = round}};
    entry.unix_nanos = kFollowedWall_ns + from_seconds(start_s + since_start_s).count();
    const std::string path = folder_ + "/" + event_log_name(PeerId{writer});
    std::ofstream(log_part_path(path, static_cast<std::uint64_t>(part)), std::ios::app)
        << to_json_line(entry) << '\n';
  }

  std::vector<Round> polled() {
    auto entries = follower_.poll();
    EXPECT_TRUE(entries.ok());
    std::vector<Round> rounds;
    for (const LogEntry& entry : entries.value()) rounds.push_back(entry.event.round);
    return rounds;
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

TEST_F(LogFollowerTest, says_what_is_missing_or_broken) {
  EXPECT_THAT(LogFollower(folder_ + "/none").poll().error().message, HasSubstr("/none: No such file"));
  std::ofstream(folder_ + "/events-1.jsonl") << "{}\n";
  EXPECT_THAT(follower_.poll().error().message, HasSubstr("events-1.jsonl:1:"));
}

TEST_F(LogFollowerTest, follows_a_single_log) {
  write(1, 1, 1);
  write(2, 2, 2);
  LogFollower one(folder_ + "/events-2.jsonl");
  const auto entries = one.poll();
  ASSERT_EQ(entries.value().size(), 1U);
  EXPECT_EQ(entries.value()[0].writer, PeerId{2});
}

}  // namespace
}  // namespace tw::monitor
