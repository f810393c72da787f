// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/times.h"

#include <gtest/gtest.h>

namespace tw::measure {
namespace {

Instant at(double seconds) { return Instant(from_seconds(seconds)); }

/// One round of one peer, whose usage grows while it averages.
std::vector<monitor::LogEntry> log_of(PeerId peer, double call_s, double gather_s, double commit_s) {
  const auto entry = [&](double seconds, world::Fact fact) {
    return monitor::LogEntry{peer, 0, {.at = at(seconds), .round = 7, .fact = std::move(fact)}};
  };
  return {entry(call_s, event::Call{.use = {.cpu_s = 10, .kernel_s = 4, .bytes_sent = 1000}}),
          entry(call_s + 0.1, event::Call{.use = {.cpu_s = 11, .bytes_sent = 1500}}),
          entry(gather_s - 0.25, event::Scatter{}), entry(gather_s, event::Gather{}),
          entry(commit_s, event::Commit{.use = {.cpu_s = 10.5,
                                                .kernel_s = 4.25,
                                                .peak_memory = static_cast<std::uint64_t>(1e6 * commit_s),
                                                .bytes_sent = 3000}})};
}

PeerLogs two_peers() {
  return {{PeerId{1}, log_of(PeerId{1}, 1.0, 2.5, 3.0)}, {PeerId{2}, log_of(PeerId{2}, 1.2, 2.0, 3.1)}};
}

TEST(RoundTimes, end_with_the_last_peer_and_add_up_what_all_used_since_their_first_call) {
  const auto times = times_of(two_peers(), 7, at(1.0)).value();
  EXPECT_DOUBLE_EQ(times.call_s, 0.2);
  EXPECT_DOUBLE_EQ(times.sums_s, 1.25);
  EXPECT_DOUBLE_EQ(times.mean_s, 1.5);
  EXPECT_DOUBLE_EQ(times.commit_s, 2.1);
  EXPECT_DOUBLE_EQ(times.cpu_s, 1.0);
  EXPECT_DOUBLE_EQ(times.kernel_s, 0.5);
  EXPECT_DOUBLE_EQ(times.peak_memory, 3.1e6);
  EXPECT_EQ(times.bytes_sent, (std::map<PeerId, double>{{PeerId{1}, 2000}, {PeerId{2}, 2000}}));
}

TEST(RoundTimes, need_every_peer) {
  PeerLogs logs = two_peers();
  logs[PeerId{2}].pop_back();
  EXPECT_EQ(times_of(logs, 7, at(1.0)).error().message, "peer 2 took no part in round 7");
  EXPECT_FALSE(times_of(two_peers(), 8, at(1.0)));
}

TEST(FirstCall, is_that_of_whoever_had_the_plan_first) {
  EXPECT_EQ(first_call(two_peers(), 7), at(1.0));
  EXPECT_EQ(first_call(two_peers(), 8), std::nullopt);
}

TEST(Leader, is_whoever_said_so_last) {
  PeerLogs logs = two_peers();
  EXPECT_EQ(leader_in(logs), PeerId{1});
  logs[PeerId{2}].push_back({PeerId{2}, 0, {.at = at(0.5), .round = 1, .fact = event::Lead{}}});
  EXPECT_EQ(leader_in(logs), PeerId{2});
  logs[PeerId{1}].push_back({PeerId{1}, 0, {.at = at(4.0), .round = 8, .fact = event::Lead{}}});
  EXPECT_EQ(leader_in(logs), PeerId{1});
}

}  // namespace
}  // namespace tw::measure
