// SPDX-License-Identifier: Apache-2.0
// The judges of the soak see what they are there for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/soak/history_judge.h"
#include "e2e/soak/line_judge.h"
#include "e2e/soak/line_tail.h"
#include "e2e/soak/usage_judge.h"

namespace tw::soak {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kFull = 20;

struct Told {
  std::string digest = "a";
  std::uint64_t samples = 20;  ///< until and with this round
  std::uint64_t carried = 0;
  std::uint64_t own = 4;
  event::Cause cause = {};
};

monitor::LogEntry entry(std::uint64_t peer, Round round, world::Fact fact) {
  return {.writer = PeerId{peer}, .event = {.round = round, .fact = std::move(fact)}};
}

monitor::LogEntry commit(std::uint64_t peer, Round round, const Told& told) {
  return entry(peer, round,
               event::Commit{.digest = told.digest,
                             .cause = told.cause,
                             .samples = told.own,
                             .samples_total = told.samples,
                             .carried = told.carried,
                             .members = 2});
}

TEST(HistoryJudge, is_content_with_one_history_whose_samples_add_up) {
  HistoryJudge judge(kFull);
  for (const std::uint64_t peer : {1, 2}) {
    judge.see(commit(peer, 1, {.samples = 15}));
    judge.see(entry(peer, 1, event::Apply{.digest = "of a"}));
    judge.see(commit(peer, 2, {.digest = "b", .samples = 35, .carried = 5}));
  }
  const auto findings = judge.judge();
  EXPECT_THAT(findings.faults, IsEmpty());
  EXPECT_EQ(findings.rounds, 2U);
  EXPECT_EQ(findings.samples, 35U);
}

TEST(HistoryJudge, sees_two_records_of_a_round_that_no_minority_decided) {
  HistoryJudge judge(kFull);
  judge.see(commit(2, 1, {.digest = "x"}));
  judge.see(commit(1, 1, {}));
  EXPECT_THAT(judge.judge().faults, ElementsAre(HasSubstr("which a majority decided and gave up")));
}

monitor::LogEntry lines_missing(std::uint64_t peer, Round round) {
  monitor::LogEntry entry{.writer = PeerId{peer}};
  entry.event = {.round = round, .fact = event::Log{.missing = 41}};
  return entry;
}

TEST(HistoryJudge, passes_over_rounds_that_full_disks_did_not_log_but_judges_their_samples) {
  for (const std::uint64_t total : {90U, 101U}) {
    HistoryJudge judge(kFull);
    judge.see(commit(1, 1, {}));
    judge.see(lines_missing(1, 5));
    judge.see(commit(1, 5, {.digest = "e", .samples = total}));
    const auto findings = judge.judge();
    EXPECT_EQ(findings.unlogged, 3U);
    EXPECT_EQ(findings.faults.empty(), total == 90) << "five rounds of 20 samples at most";
  }
}

TEST(HistoryJudge, sees_rounds_that_no_log_has_though_none_lacks_lines) {
  HistoryJudge judge(kFull);
  judge.see(commit(1, 1, {}));
  judge.see(commit(1, 5, {.digest = "e", .samples = 90}));
  EXPECT_THAT(judge.judge().faults, Contains(HasSubstr("no log has what led to round 5")));
}

TEST(HistoryJudge, sees_different_sums_and_parameters_of_a_round) {
  HistoryJudge judge(kFull);
  judge.see(commit(1, 1, {}));
  judge.see(commit(2, 1, {.samples = 19}));
  judge.see(entry(1, 1, event::Apply{.digest = "of a"}));
  judge.see(entry(2, 1, event::Apply{.digest = "of another"}));
  judge.see(entry(3, 1, event::Restore{.digest = "of none"}));
  EXPECT_THAT(judge.judge().faults,
              AllOf(Contains(HasSubstr("count samples differently")),
                    Contains(HasSubstr("different parameters")), Contains(HasSubstr("peer 3 took other"))));
}

TEST(HistoryJudge, sees_a_round_committed_again_and_one_that_is_missing) {
  HistoryJudge judge(kFull);
  judge.see(commit(1, 1, {}));
  judge.see(commit(1, 3, {.digest = "c", .samples = 60}));
  judge.see(commit(1, 3, {.digest = "c", .samples = 60}));
  EXPECT_THAT(judge.judge().faults,
              ElementsAre(HasSubstr("commits round 3 after"), HasSubstr("what led to round 3"),
                          HasSubstr("which a majority decided and gave up")));
}

TEST(HistoryJudge, sees_samples_that_got_lost_or_were_counted_twice) {
  HistoryJudge judge(kFull);
  judge.see(commit(1, 1, {.samples = 15, .own = 12}));
  judge.see(commit(2, 1, {.samples = 15, .own = 9}));
  judge.see(commit(1, 2, {.digest = "b", .samples = 36}));
  EXPECT_THAT(judge.judge().faults,
              AllOf(Contains(HasSubstr("15 samples and leaves 0")), Contains(HasSubstr("did 21 samples")),
                    Contains(HasSubstr("round 2 has 21 samples"))));
}

TEST(HistoryJudge, lets_what_was_decided_without_a_majority_be_given_up_but_nothing_else) {
  HistoryJudge judge(kFull);
  judge.see(commit(1, 1, {}));
  judge.see(commit(1, 2, {.digest = "x", .samples = 40, .cause = event::Cause::minority}));
  judge.see(commit(1, 3, {.digest = "y", .samples = 60}));
  judge.see(entry(1, 0, event::Restore{.digest = ""}));
  judge.see(entry(1, 3, event::Apply{.digest = "of y"}));
  judge.see(commit(2, 1, {}));
  judge.see(commit(2, 2, {.digest = "b", .samples = 40}));
  judge.see(commit(1, 2, {.digest = "b", .samples = 40}));
  EXPECT_THAT(judge.judge().faults, IsEmpty());
  EXPECT_EQ(judge.judge().given_up, 2U);

  judge.see(commit(3, 1, {}));
  judge.see(commit(3, 2, {.digest = "x", .samples = 40, .cause = event::Cause::minority}));
  EXPECT_THAT(judge.judge().faults, Contains(HasSubstr("round 2 has another record")))
      << "that of the majority was given up";
}

TEST(LineJudge, counts_lines_that_differ_in_numbers_alone_but_not_those_of_every_round) {
  LineJudge judge;
  for (int i = 0; i < 7; ++i) {
    judge.see("peer 1", "no link: 10.0.0." + std::to_string(i) + ":71: refused");
    judge.see("peer 1", "round " + std::to_string(i) + "  5 peers  3 samples/s");
    judge.see(commit(1, 1, {}));
  }
  EXPECT_THAT(judge.repeated(6), ElementsAre("peer 1 says 7 times: no link: #.#.#.#:#: refused"));
  EXPECT_THAT(judge.repeated(7), IsEmpty());
}

TEST(UsageJudge, sees_what_grows_after_the_first_tenth) {
  const auto soak = [](std::uint64_t bytes_a_second, double from_s) {
    UsageJudge judge;
    for (double s = 0; s < 1000; s += 20) {
      const auto grown = static_cast<std::uint64_t>(s < from_s ? 0 : s) * bytes_a_second;
      judge.see("peer 2", {.at_s = s, .own_bytes = (50 << 20) + grown, .descriptors = 40, .threads = 3});
    }
    return judge.faults(1000);
  };
  EXPECT_THAT(soak(0, 0), IsEmpty());
  EXPECT_THAT(soak(2000, 0), IsEmpty()) << "less than 5 % of 50 MiB in all";
  EXPECT_THAT(soak(10000, 0), ElementsAre(HasSubstr("own memory in bytes grew")));
}

TEST(LineTail, follows_a_file_that_is_cut_or_replaced) {
  const std::string path = testing::TempDir() + "tw-line-tail-" + std::to_string(getpid());
  LineTail tail(path);
  EXPECT_THAT(tail.poll(), IsEmpty()) << "there is no such file yet";
  std::ofstream(path) << "one\ntwo\nhal";
  EXPECT_THAT(tail.poll(), ElementsAre("one", "two"));
  std::filesystem::resize_file(path, 8);
  std::ofstream(path, std::ios::app) << "three\n";
  EXPECT_THAT(tail.poll(), ElementsAre("three"));
  std::ofstream(path, std::ios::app) << "four\n";
  std::filesystem::rename(path, path + ".1");
  std::ofstream(path) << "five\n";
  EXPECT_THAT(tail.poll(), ElementsAre("four", "five"));
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".1");
}

}  // namespace
}  // namespace tw::soak
