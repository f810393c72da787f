// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/used_samples.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tw::monitor {
namespace {

LogEntry committed(std::uint64_t writer, Round round, event::Commit commit) {
  return {.writer = PeerId{writer}, .event = {.round = round, .fact = std::move(commit)}};
}

Result<UsedSamples> used_in(const std::vector<LogEntry>& entries) {
  const std::vector<std::vector<LogEntry>> all{entries};
  const HeldLogs logs(all);
  return used_samples(logs, HeldHistory::of(logs).value());
}

TEST(UsedSamples, follow_the_records_and_count_each_once) {
  std::vector<LogEntry> entries = {
      {.writer = PeerId{1},
       .event = {.fact =
                     event::Log{.seed = "18446744073709551615", .dataset = 100, .block = 4, .begun = 50}}},
      committed(1, 1,
                {.digest = "a",
                 .parent = "0",
                 .samples_of = {{PeerId{1}, "0-3,6"}, {PeerId{2}, "4-5,7"}},
                 .samples_total = 8}),
      committed(2, 1,
                {.digest = "a",
                 .parent = "0",
                 .samples_of = {{PeerId{1}, "0-3,6"}, {PeerId{2}, "4-5,7"}},
                 .samples_total = 8}),
      // A branch that a minority left again.
      committed(2, 2,
                {.digest = "minor", .parent = "a", .samples_of = {{PeerId{2}, "8-11"}}, .samples_total = 12}),
      committed(1, 2,
                {.digest = "b", .parent = "a", .samples_of = {{PeerId{1}, "8-13"}}, .samples_total = 14}),
      committed(1, 3,
                {.digest = "c", .parent = "b", .samples_of = {{PeerId{1}, "16-21"}}, .samples_total = 20}),
      {.writer = PeerId{1}, .event = {.fact = event::Skip{.sample = 9}}}};
  const auto used = used_in(entries);
  ASSERT_TRUE(used) << used.error().message;
  EXPECT_EQ(used.value().rounds.size(), 3U);
  EXPECT_EQ(to_string(used.value().rounds[0].of.at(PeerId{2})), "4-5,7");
  EXPECT_EQ(to_string(used.value().all), "0-13,16-21");
  EXPECT_EQ(used.value().skipped, std::set<std::uint64_t>{9});
  EXPECT_EQ(used.value().order->seed, 18446744073709551615ULL);
  EXPECT_EQ(used.value().order->dataset, 100U);
  EXPECT_EQ(used.value().order->block, 4U);
  EXPECT_EQ(used.value().order->begun, 50U);
  EXPECT_EQ(
      text_of(used.value()),
      "3 rounds, 20 samples, each once; round 2 was dropped (4 samples of peer 2); not used so far: 14-15");
}

TEST(UsedSamples, refuse_a_sample_that_was_used_before) {
  const auto used = used_in(
      {committed(1, 1,
                 {.digest = "a", .parent = "0", .samples_of = {{PeerId{1}, "0-7"}}, .samples_total = 8}),
       committed(1, 2,
                 {.digest = "b", .parent = "a", .samples_of = {{PeerId{3}, "7-14"}}, .samples_total = 16})});
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().message, "round 2: peer 3 used samples 7-14, of which some were used before");
  const auto in_one = used_in({committed(1, 1,
                                         {.digest = "a",
                                          .parent = "0",
                                          .samples_of = {{PeerId{1}, "0-7"}, {PeerId{2}, "3"}},
                                          .samples_total = 8})});
  EXPECT_FALSE(in_one);
}

TEST(UsedSamples, need_logs_that_tell_them) {
  for (const char* ranges : {"", "1-", "5-3", "x", "1,,2"}) {
    const auto used = used_in({committed(
        1, 1, {.digest = "a", .parent = "0", .samples_of = {{PeerId{1}, ranges}}, .samples_total = 8})});
    ASSERT_FALSE(used) << ranges;
    EXPECT_EQ(used.error().message, "no log tells the samples of a round");
  }
}

}  // namespace
}  // namespace tw::monitor
