// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/missing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "monitor/report/test_story.h"

namespace tw::monitor {
namespace {

/// Peers 1 and 2 commit rounds 1 to 40, a second each; each commit names both.
class Passed : public testing::Test {
 protected:
  Passed() {
    for (const std::uint64_t peer : {1U, 2U}) {
      add(peer, 0, event::Start{});
      for (Round round = 1; round <= 40; ++round) {
        add(peer, round, event::Accumulate{});
        add(peer, round, event::Commit{.peers = {PeerId{1}, PeerId{2}}, .samples = 8});
      }
      add(peer, 40, event::Stop{});
    }
  }

  void add(std::uint64_t peer, Round round, world::Fact fact) {
    world::Event event{.round = round, .fact = std::move(fact)};
    event.at = Instant(from_seconds(static_cast<double>(round)));
    logs_[peer - 1].push_back({.writer = PeerId{peer},
                               .unix_nanos = kEpochNanos + event.at.time_since_epoch().count(),
                               .event = event});
  }

  /// From the log of peer 2.
  void erase(const std::function<bool(const LogEntry&)>& is_gone) { std::erase_if(logs_[1], is_gone); }

  void erase_rounds(Round first, Round last) {
    erase([&](const LogEntry& e) { return e.event.round >= first && e.event.round <= last; });
  }

  /// Puts an event of peer 2 before its lines of this round.
  void put(Round round, world::Fact fact) {
    add(2, round, std::move(fact));
    std::rotate(std::ranges::find(logs_[1], round, [](const LogEntry& e) { return e.event.round; }),
                logs_[1].end() - 1, logs_[1].end());
  }

  std::vector<std::string> missing() const {
    std::vector<std::string> lines;
    for (const MissingEvents& gap : summarize(logs_).missing) lines.push_back(to_string(gap));
    return lines;
  }

  std::vector<std::vector<LogEntry>> logs_{2};
};

TEST_F(Passed, nothing_of_whole_logs) {
  EXPECT_EQ(missing(), std::vector<std::string>());
  EXPECT_TRUE(summarize(logs_).joined.empty());
}

/// What the log of peer 2 lacks in these seconds.
std::vector<std::string> gap(int first_s, int last_s, const std::string& rounds) {
  return {fmt::format(
      "peer 2: events between 2026-01-01T00:00:{:02}.000Z and 2026-01-01T00:00:{:02}.000Z (its log has no "
      "commit of {}, to which it contributed)",
      first_s, last_s, rounds)};
}

TEST_F(Passed, rounds_of_a_log_without_its_first_lines_are_missing_and_its_peer_did_not_join_late) {
  erase_rounds(0, 32);
  EXPECT_EQ(missing(), gap(1, 32, "rounds 1 to 32"));
  EXPECT_TRUE(summarize(logs_).joined.empty());
}

TEST_F(Passed, rounds_between_are_missing) {
  erase_rounds(7, 7);
  EXPECT_EQ(missing(), gap(7, 7, "round 7"));
  erase_rounds(20, 22);
  EXPECT_EQ(missing(), gap(7, 22, "4 rounds from 7 to 22"));
}

TEST_F(Passed, rounds_before_a_new_start_are_not_missing) {
  erase_rounds(7, 9);
  put(10, event::Start{});
  EXPECT_EQ(missing(), std::vector<std::string>());
}

TEST_F(Passed, rounds_before_a_state_from_others_are_not_missing) {
  erase_rounds(7, 9);
  put(10, event::Restore{});
  EXPECT_EQ(missing(), std::vector<std::string>());
}

TEST_F(Passed, rounds_to_which_the_peer_did_not_contribute_are_not_missing) {
  erase_rounds(7, 9);
  for (LogEntry& entry : logs_[0])
    if (auto* commit = std::get_if<event::Commit>(&entry.event.fact); commit && entry.event.round < 10)
      if (entry.event.round > 6) commit->peers = {PeerId{1}};
  EXPECT_EQ(missing(), std::vector<std::string>());
}

}  // namespace
}  // namespace tw::monitor
