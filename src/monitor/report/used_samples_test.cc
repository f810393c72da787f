// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/used_samples.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tw::monitor {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

LogEntry committed(std::uint64_t writer, Round round, const std::string& digest, double samples_total,
                   Texts texts) {
  return {.writer = PeerId{writer},
          .event = {.phase = world::Phase::commit,
                    .round = round,
                    .numbers = {{"samples_total", samples_total}},
                    .digest = digest,
                    .texts = std::move(texts)}};
}

TEST(UsedSamples, follow_the_records_and_count_each_once) {
  std::vector<LogEntry> entries = {
      {.writer = PeerId{1},
       .event = {.phase = world::Phase::log,
                 .numbers = {{"dataset", 100}, {"block", 4}},
                 .texts = {{"seed", "18446744073709551615"}}}},
      committed(1, 1, "a", 8, {{"parent", "0"}, {"samples:1", "0-3,6"}, {"samples:2", "4-5,7"}}),
      committed(2, 1, "a", 8, {{"parent", "0"}, {"samples:1", "0-3,6"}, {"samples:2", "4-5,7"}}),
      // A branch that a minority left again.
      committed(2, 2, "minor", 12, {{"parent", "a"}, {"samples:2", "8-11"}}),
      committed(1, 2, "b", 14, {{"parent", "a"}, {"samples:1", "8-13"}}),
      committed(1, 3, "c", 20, {{"parent", "b"}, {"samples:1", "16-21"}}),
      {.writer = PeerId{1}, .event = {.phase = world::Phase::skip, .numbers = {{"sample", 9}}}}};
  const auto used = used_samples(entries);
  ASSERT_TRUE(used) << used.error().message;
  EXPECT_EQ(used.value().rounds.size(), 3U);
  EXPECT_EQ(to_string(used.value().rounds[0].of.at(PeerId{2})), "4-5,7");
  EXPECT_EQ(to_string(used.value().all), "0-13,16-21");
  EXPECT_EQ(used.value().skipped, std::set<std::uint64_t>{9});
  EXPECT_EQ(used.value().order->seed, 18446744073709551615ULL);
  EXPECT_EQ(used.value().order->dataset, 100U);
  EXPECT_EQ(used.value().order->block, 4U);
  EXPECT_EQ(
      text_of(used.value()),
      "3 rounds, 20 samples, each once; round 2 was dropped (4 samples of peer 2); not used so far: 14-15");
}

TEST(UsedSamples, refuse_a_sample_that_was_used_before) {
  const auto used = used_samples({committed(1, 1, "a", 8, {{"parent", "0"}, {"samples:1", "0-7"}}),
                                  committed(1, 2, "b", 16, {{"parent", "a"}, {"samples:3", "7-14"}})});
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().message, "round 2: peer 3 used samples 7-14, of which some were used before");
  const auto in_one =
      used_samples({committed(1, 1, "a", 8, {{"parent", "0"}, {"samples:1", "0-7"}, {"samples:2", "3"}})});
  EXPECT_FALSE(in_one);
}

TEST(UsedSamples, need_logs_that_tell_them) {
  for (const char* ranges : {"", "1-", "5-3", "x", "1,,2"}) {
    const auto used = used_samples({committed(1, 1, "a", 8, {{"parent", "0"}, {"samples:1", ranges}})});
    ASSERT_FALSE(used) << ranges;
    EXPECT_EQ(used.error().message, "no log tells the samples of a round");
  }
}

}  // namespace
}  // namespace tw::monitor
