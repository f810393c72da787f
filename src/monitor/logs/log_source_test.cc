// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/log_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/logs/test_logs.h"

namespace tw::monitor {
namespace {

using ::testing::ElementsAre;

/// In seconds by the monotonic and by the wall clock.
LogEntry at(Round round, double since_start_s, double unix_s) {
  return {.writer = PeerId{1},
          .unix_nanos = from_seconds(unix_s).count(),
          .event = {.at = Instant(from_seconds(since_start_s)), .round = round}};
}

std::vector<Round> in_one(const std::vector<std::vector<LogEntry>>& logs) {
  std::vector<Round> rounds;
  for (const LogEntry& entry : merge(logs)) rounds.push_back(entry.event.round);
  return rounds;
}

TEST(LogSource, gives_all_logs_in_the_order_of_time_and_the_first_log_first) {
  EXPECT_THAT(in_one({{at(1, 1, 101), at(3, 2, 102), at(4, 2, 102)}, {}, {at(2, 1, 101), at(5, 2, 102)}}),
              ElementsAre(1, 2, 3, 4, 5));
}

TEST(LogSource, moves_a_log_of_another_machine_to_the_time_line_of_the_first) {
  const std::vector<std::vector<LogEntry>> logs{{at(1, 100, 1000), at(3, 110, 1010)}, {at(2, 5, 1005)}};
  EXPECT_THAT(in_one(logs), ElementsAre(1, 2, 3));
  EXPECT_EQ(merge(logs)[1].event.at, Instant(from_seconds(105)));
}

TEST(LogSource, keeps_the_order_of_a_log_whose_machine_was_restarted) {
  const std::vector<std::vector<LogEntry>> logs{{at(1, 500, 1000), at(3, 501, 1001), at(4, 4, 1030)},
                                                {at(2, 500.5, 1000.5), at(5, 540, 1040)}};
  std::vector<std::size_t> taken(logs.size());
  std::vector<Round> rounds;
  const auto next = [&](std::size_t log) -> Result<std::optional<LogEntry>> {
    if (taken[log] == logs[log].size()) return std::optional<LogEntry>();
    return std::optional(logs[log][taken[log]++]);
  };
  ASSERT_TRUE(in_order(logs.size(), next,
                       [&](const LogEntry& entry, std::size_t) { rounds.push_back(entry.event.round); }));
  EXPECT_THAT(rounds, ElementsAre(1, 2, 3, 4, 5));
}

TEST(LogSource, says_which_log_cannot_be_read) {
  const Status broken = in_order(
      2, [](std::size_t log) { return Result<std::optional<LogEntry>>(Error{"log " + std::to_string(log)}); },
      [](const LogEntry&, std::size_t) {});
  EXPECT_EQ(broken.error().message, "log 0");
}

TEST(LogSource, puts_the_lines_after_a_restart_of_the_machine_behind_those_of_other_logs_before_it) {
  const std::vector<std::vector<LogEntry>> logs{
      {at(1, 500, 1000), at(3, 501, 1001), at(5, 4, 1030), at(7, 14, 1040)},
      {at(2, 500.5, 1000.5), at(4, 520, 1020), at(6, 535, 1035)}};
  EXPECT_THAT(in_one(logs), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(merge(logs)[4].event.at, Instant(from_seconds(530)));
}

TEST(LogClock, begins_a_stretch_at_a_start_where_the_machine_has_run_for_longer_than_the_one_before) {
  std::vector<LogEntry> log{at(1, 10, 1010), at(2, 11, 1011), at(3, 400, 1020), at(4, 401, 1021)};
  EXPECT_EQ(merge({log})[2].event.at, Instant(from_seconds(400))) << "no start: its clock was set";
  log[2].event.fact = event::Start{};
  EXPECT_EQ(merge({log})[2].event.at, Instant(from_seconds(20)));
  EXPECT_EQ(merge({log})[3].event.at, Instant(from_seconds(21)));
}

TEST(ClockOffsets, have_a_lower_median_of_whole_milliseconds) {
  ClockOffsets offsets;
  offsets.note(at(1, 0, 5.0001));
  EXPECT_EQ(offsets.usual(), from_seconds(5));
  offsets.note(at(1, 0, 7));
  EXPECT_EQ(offsets.usual(), from_seconds(5));
  offsets.note(at(1, 0, 7));
  EXPECT_EQ(offsets.usual(), from_seconds(7));
}

}  // namespace
}  // namespace tw::monitor
