// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/one_run.h"

#include <gtest/gtest.h>

#include <string>

namespace tw::monitor {
namespace {

/// Starts of these runs, each with a round; with a "-" after its name a start alone.
std::vector<LogEntry> log_of(std::uint64_t writer, const std::vector<std::string>& runs) {
  std::vector<LogEntry> log;
  for (const std::string& run : runs) {
    const bool is_refused = run.ends_with('-');
    log.push_back({.writer = PeerId{writer}, .event = {.fact = event::Start{.digest = run}}});
    if (!is_refused)
      log.push_back({.writer = PeerId{writer}, .event = {.round = 1, .fact = event::Commit{}}});
  }
  return log;
}

TEST(OneRun, is_expected_of_all_logs) {
  EXPECT_TRUE(check_one_run({log_of(1, {"aa"}), log_of(2, {"aa"}), log_of(3, {}), {}}));
  const Status two = check_one_run({log_of(1, {"aa"}), log_of(2, {"bb"}), log_of(3, {"aa"})});
  ASSERT_FALSE(two);
  EXPECT_EQ(
      two.error().message,
      "the logs are of two runs: aa in events-1.jsonl, and bb in events-2.jsonl; expected logs of one run "
      "in a folder");
}

TEST(OneRun, of_a_folder_that_was_used_again_may_be_a_later_one) {
  EXPECT_TRUE(check_one_run({log_of(1, {"aa", "bb"}), log_of(2, {"aa"}), log_of(3, {"bb"})}));
  EXPECT_TRUE(check_one_run({log_of(2, {"aa"}), log_of(3, {"bb"}), log_of(1, {"aa", "bb"})}));
}

TEST(OneRun, is_not_in_question_where_a_peer_was_refused) {
  EXPECT_TRUE(check_one_run({log_of(1, {"aa"}), log_of(2, {"bb-"})}));
}

}  // namespace
}  // namespace tw::monitor
