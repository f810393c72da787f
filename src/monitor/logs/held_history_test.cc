// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/held_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "monitor/fold/journal.h"
#include "monitor/logs/test_logs.h"
#include "monitor/report/report.h"
#include "monitor/report/report_text.h"
#include "monitor/report/test_story.h"
#include "monitor/report/used_samples.h"

namespace tw::monitor {
namespace {

using event::Cause;
using world::Phase;

/// A run whose events name their records: 64 samples a round, round r from second r on.
class Forked : public ::testing::Test {
 protected:
  void add(int peer, double t, world::Event event) {
    story.add(static_cast<std::uint64_t>(peer), t, std::move(event));
  }

  void start(int peer, double t, double usd_per_h = 0) {
    event::Start start;
    if (usd_per_h > 0) start.usd_per_h = usd_per_h;
    add(peer, t, {.fact = std::move(start)});
  }

  /// A history of records NAME1, NAME2, ..., whose first one here follows `parent`.
  struct Branch {
    std::string name, parent;
    Round alone_from = 1000;  ///< decided without a majority
    double later = 0;         ///< seconds by which its rounds begin after the usual time
  };

  void round(int peer, Round number, const Branch& branch) {
    const double t = static_cast<double>(number) + branch.later;
    const std::string record = branch.name + std::to_string(number);
    const std::uint64_t first = 64 * (number - 1);
    add(peer, t, {.at = {}, .round = number, .fact = event::Accumulate{}});
    add(peer, t + 0.9,
        {.round = number,
         .fact = event::Commit{
             .digest = record,
             .parent = branch.parent,
             .samples_of = {{PeerId{1}, std::to_string(first) + "-" + std::to_string(first + 63)}},
             .samples = 32,
             .samples_total = 64 * number,
             .majority_samples = 64 * std::min(number, branch.alone_from - 1)}});
    add(peer, t + 0.95,
        {.round = number, .fact = event::Apply{.digest = "parameters after " + record, .record = record}});
  }

  void rounds(int peer, Round first, Round last, Branch branch) {
    for (Round number = first; number <= last; ++number) {
      round(peer, number, branch);
      branch.parent = branch.name + std::to_string(number);
    }
  }

  void restores(int peer, double t, Round number, const std::string& record, const std::string& parent = {}) {
    add(peer, t, {.round = number, .fact = event::Restore{}});
    event::Restore restored{.digest = "parameters after " + (parent.empty() ? record : parent),
                            .record = record,
                            .parent = parent};
    if (!parent.empty()) restored.cause = Cause::checkpoint;
    add(peer, t + 0.1, {.round = number, .fact = std::move(restored)});
  }

  /// Peers 1 and 2 go on from round 11; peer 3 decides rounds 11 to 40 alone, comes back, and takes round 60.
  void fork() {
    for (const int peer : {1, 2, 3}) {
      start(peer, 0, 3.6);
      rounds(peer, 1, 10, {"a", "none"});
    }
    for (const int peer : {1, 2}) rounds(peer, 11, 60, {"a", "a10"});
    rounds(3, 11, 40, {"lone", "a10", 11});
    restores(3, 61, 60, "a60");
    for (const int peer : {1, 2, 3}) rounds(peer, 61, 70, {.name = "a", .parent = "a60", .later = 1});
  }

  UsedSamples used() const {
    const auto entries = story.logs();
    const HeldLogs logs(entries);
    auto samples = used_samples(logs, HeldHistory::of(logs).value());
    EXPECT_TRUE(samples) << samples.error().message;
    return samples ? samples.value() : UsedSamples{};
  }

  Story story;
};

TEST_F(Forked, parameters_of_a_history_that_was_given_up_are_not_compared_with_those_of_the_run) {
  fork();
  const Summary summary = story.summary();
  EXPECT_TRUE(summary.identical) << summary.difference;
  EXPECT_EQ(summary.rounds, 70U);
  EXPECT_EQ(summary.samples, 70U * 64);
  EXPECT_TRUE(summary.lost.empty());
}

TEST_F(Forked, a_late_peer_that_takes_the_first_record_in_the_end_drops_nothing) {
  for (const int peer : {1, 2}) rounds(peer, 1, 10, {"a", "a0"});
  restores(3, 20, 0, "a0");
  EXPECT_EQ(story.summary().rounds, 10U);
  EXPECT_EQ(story.summary().samples, 10U * 64);
  EXPECT_TRUE(used().dropped.empty());
}

TEST_F(Forked, parameters_after_one_record_are_compared) {
  fork();
  story.add(2, 67.5, {.round = 65, .fact = event::Apply{.digest = "others", .record = "a65"}});
  EXPECT_FALSE(summarize(story.logs()).identical);
  EXPECT_FALSE(journal_of(story.logs()).board().identical.value());
}

TEST_F(Forked, what_was_dropped_is_told_with_its_samples_time_and_price) {
  fork();
  const Summary summary = summarize(story.logs());
  ASSERT_EQ(summary.dropped.size(), 1U);
  const DroppedRounds& dropped = summary.dropped.front();
  EXPECT_EQ(to_string(dropped), "rounds 11 to 40 were dropped (1920 samples of peer 3)");
  EXPECT_EQ(dropped.begun, Instant(from_seconds(11)));
  EXPECT_EQ(dropped.ended, Instant(from_seconds(40.9)));
  EXPECT_NEAR(dropped.usd.value(), 30 * 0.9 * 0.001, 1e-9) << "3.6 USD an hour";
  EXPECT_NE(render(summary).find("rounds 11 to 40 were dropped"), std::string::npos);
}

TEST_F(Forked, samples_are_those_of_the_history_that_the_run_holds_though_another_one_has_more) {
  fork();
  start(4, 0);
  rounds(4, 1, 10, {"a", "none"});
  rounds(4, 11, 400, {"longer", "a10", 11});
  EXPECT_EQ(used().rounds.size(), 70U);
  EXPECT_EQ(to_string(used().all), "0-4479");
  const std::string text = text_of(used());
  EXPECT_TRUE(text.starts_with("70 rounds, 4480 samples, each once; rounds 11 to ")) << text;
  EXPECT_NE(text.find("rounds 11 to 40 were dropped (1920 samples of peer 3)"), text.npos) << text;
}

TEST_F(Forked, a_resumed_run_has_the_rounds_before_its_checkpoint_and_none_that_it_repeats) {
  for (const int peer : {1, 2}) {
    start(peer, 0);
    rounds(peer, 1, 30, {"a", "none"});
  }
  start(1, 40);
  restores(1, 41, 20, "again20", "a20");
  rounds(1, 21, 26, {"b", "again20", 21, 30});
  EXPECT_EQ(used().rounds.size(), 26U);
  EXPECT_EQ(to_string(used().all), "0-1663");
  const Summary summary = summarize(story.logs());
  EXPECT_EQ(summary.rounds, 26U);
  EXPECT_EQ(summary.samples, 26U * 64);
  EXPECT_TRUE(summary.identical) << summary.difference;
  ASSERT_EQ(summary.dropped.size(), 1U);
  EXPECT_EQ(summary.dropped.front().first, 21U);
  EXPECT_EQ(summary.dropped.front().last, 30U);

  const auto peer_of = [&](std::uint64_t number) {
    return *std::ranges::find(summary.board.peers, PeerId{number}, &BoardPeer::peer);
  };
  EXPECT_EQ(peer_of(2).state, PeerState::lost);
  EXPECT_EQ(peer_of(2).ended, "lost with all other peers");
  EXPECT_NE(peer_of(1).state, PeerState::lost);
  EXPECT_THAT(render(summary), ::testing::HasSubstr("resumed        after round 20: peer 1 goes on from a "
                                                    "checkpoint, 30.1 s after round 20 was done; lost: 2\n"));
}

TEST_F(Forked, a_peer_that_gives_its_history_up_takes_its_later_rounds_from_the_board) {
  Journal journal;
  for (const int peer : {1, 3}) rounds(peer, 1, 10, {"a", "none"});
  rounds(3, 11, 40, {"lone", "a10", 11});
  for (const LogEntry& entry : merge(story.logs())) journal.take(entry);
  EXPECT_EQ(journal.board().round, 40U);
  Story later;
  std::swap(story, later);
  restores(3, 61, 15, "a15");
  for (const LogEntry& entry : merge(story.logs())) journal.take(entry);
  EXPECT_EQ(journal.board().round, 15U);
  EXPECT_TRUE(journal.board().identical.value());
}

/// Logs that lose or get entries once they were gone through.
class ChangingLogs final : public LogSource {
 public:
  using Logs = std::vector<std::vector<LogEntry>>;

  ChangingLogs(const Logs& first, const Logs& later, int passes)
      : first_(first), later_(later), passes_(passes) {}

  Status each(const Phases& wanted, const Take& take) const override {
    return (passes_-- > 0 ? first_ : later_).each(wanted, take);
  }

 private:
  HeldLogs first_, later_;
  mutable int passes_;  ///< that give the first ones
};

TEST_F(Forked, logs_that_change_between_two_passes_are_an_error) {
  fork();
  const auto whole = story.logs();
  auto fewer = whole, more = whole;
  fewer[0].erase(fewer[0].begin() + 5, fewer[0].begin() + 25);
  for (int times = 0; times < 20; ++times) more[2].insert(more[2].end(), whole[2].begin(), whole[2].end());
  for (const int passes : {1, 2}) {
    for (const auto& later : {fewer, more}) {
      const auto history = HeldHistory::of(ChangingLogs(whole, later, passes));
      ASSERT_FALSE(history) << passes;
      EXPECT_THAT(history.error().message, ::testing::HasSubstr("changed while they were read"));
    }
  }
  EXPECT_TRUE(HeldHistory::of(ChangingLogs(whole, fewer, 3)));
}

TEST_F(Forked, a_kill_of_a_run_that_began_again_is_no_loss_of_the_new_one) {
  for (const int peer : {1, 2}) {
    start(peer, 0);
    rounds(peer, 1, peer == 2 ? 9 : 40, {"first", "none"});
  }
  add(0, 10.5, {.round = 10, .peer = PeerId{2}, .fact = event::Kill{}});
  add(1, 10.8, {.round = 10, .peer = PeerId{2}, .fact = event::Lost{}});
  start(5, 0.5);
  add(0, 1.2, {.round = 1, .peer = PeerId{5}, .fact = event::Kill{}});  // before it had a part in any round
  for (const int peer : {3, 4}) {
    start(peer, 50);
    rounds(peer, 1, 20, {.name = "second", .parent = "none", .later = 50});
  }
  EXPECT_TRUE(summarize(story.logs()).lost.empty());
  add(0, 60.5, {.round = 9, .peer = PeerId{4}, .fact = event::Kill{}});
  EXPECT_EQ(summarize(story.logs()).lost.size(), 1U);
}

}  // namespace
}  // namespace tw::monitor
