// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "monitor/fold/journal.h"
#include "monitor/report/report.h"

namespace tw::monitor {

inline constexpr std::int64_t kEpochNanos = 1'767'225'600'000'000'000;

/// A board and a report of the same logs.
inline void expect_same(const Board& board, const Summary& summary) {
  EXPECT_EQ(board.samples, summary.samples);
  EXPECT_EQ(board.ledger.skipped, summary.samples_skipped);
  EXPECT_EQ(board.ledger.committed + board.ledger.skipped, summary.samples);
  EXPECT_EQ(board.identical.value_or(false), summary.identical) << summary.difference;
  EXPECT_NEAR(board.money.machine_hours, summary.cost.machine_hours, 1e-9);
  EXPECT_EQ(board.ledger.handed_over, summary.leavings.samples_handed_over);
  EXPECT_EQ(board.ledger.again, summary.leavings.samples_again.value_or(board.ledger.again));
  const auto told = [&](Interruption::Kind kind) {
    std::multiset<PeerId> peers;
    for (const Interruption& one : board.interruptions)
      if (one.kind == kind) peers.insert(one.peer);
    return peers;
  };
  std::multiset<PeerId> lost, left, joined;
  for (const LostPeer& one : summary.lost) lost.insert(one.peer);
  for (const LeftPeer& one : summary.left) left.insert(one.peer);
  for (const JoinedPeer& one : summary.joined) joined.insert(one.peer);
  EXPECT_EQ(told(Interruption::Kind::lost), lost);
  EXPECT_EQ(told(Interruption::Kind::left), left);
  EXPECT_EQ(told(Interruption::Kind::joined), joined);
  EXPECT_EQ(told(Interruption::Kind::notice).size(), summary.notices.size());
  for (const PeerSummary& expected : summary.peers) {
    const auto peer = std::ranges::find(board.peers, expected.id, &BoardPeer::peer);
    if (expected.rounds == 0 && peer == board.peers.end()) continue;
    ASSERT_NE(peer, board.peers.end()) << to_string(expected.id);
    EXPECT_EQ(peer->rounds, expected.rounds);
    EXPECT_EQ(peer->samples, expected.samples);
    EXPECT_EQ(peer->digest, expected.digest);
    EXPECT_NEAR(peer->usage.hours, expected.hours.value_or(0), 1e-9);
  }
}

/// Writes the logs of a run by hand, in seconds.
class Story {
 public:
  void add(std::uint64_t writer, double t, world::Event event) {
    event.at = Instant(from_seconds(t));
    logs_[writer].push_back({.writer = PeerId{writer},
                             .unix_nanos = kEpochNanos + event.at.time_since_epoch().count(),
                             .event = std::move(event)});
  }

  /// A round in which every peer contributes 32 samples; it begins at t and is applied after `takes` seconds.
  void round(Round number, double t, double takes, const std::vector<std::uint64_t>& peers) {
    samples_total_ += 32 * peers.size();
    for (const std::uint64_t peer : peers) {
      const double late = peer == peers.front() ? 0 : 0.001;  // the leader knows first
      add(peer, t + late, {.phase = world::Phase::accumulate, .round = number});
      if (peer == peers.front()) add(peer, t, {.phase = world::Phase::lead, .round = number});
      add(peer, t + takes * 0.8 + late,
          {.phase = world::Phase::call, .round = number, .numbers = {{"calc_s", takes * 0.8}}});
      add(peer, t + takes + late,
          {.phase = world::Phase::commit,
           .round = number,
           .numbers = {{"samples", 32},
                       {"samples_total", static_cast<double>(samples_total_)},
                       {"comm_s", takes * 0.2}}});
      apply(peer, t + takes + late, number, "digest-" + std::to_string(number));
    }
  }

  void apply(std::uint64_t peer, double t, Round number, const std::string& digest) {
    add(peer, t, {.phase = world::Phase::apply, .round = number, .digest = digest});
  }

  /// Rounds [first, last] of a second each; round r begins at second r.
  void rounds(Round first, Round last, const std::vector<std::uint64_t>& peers) {
    for (Round number = first; number <= last; ++number) round(number, static_cast<double>(number), 1, peers);
  }

  /// Each in the order of time, as a process writes it.
  std::vector<std::vector<LogEntry>> logs() const {
    std::vector<std::vector<LogEntry>> all;
    for (const auto& [writer, log] : logs_) {
      all.push_back(log);
      std::ranges::stable_sort(all.back(), {}, [](const LogEntry& entry) { return entry.event.at; });
    }
    return all;
  }

  /// What the board has in common with it is compared on the way.
  Summary summary() const {
    const Summary summary = summarize(logs());
    expect_same(journal_of(logs()).board(), summary);
    return summary;
  }

 private:
  std::map<std::uint64_t, std::vector<LogEntry>> logs_;
  std::uint64_t samples_total_ = 0;
};

}  // namespace tw::monitor
