// SPDX-License-Identifier: Apache-2.0
#include "studies/hivemind.h"

#include <gtest/gtest.h>

namespace tw::studies {
namespace {

/// No cost but the wire.
constexpr HivemindCosts kFree{.handling_s_per_mb = 0,
                              .rendezvous_s_per_tensor = 0,
                              .update_s = 0,
                              .update_s_per_m_params = 0,
                              .stream_gain = 1,
                              .on_premises_gain = 1,
                              .fast_host = 1};

HivemindRun even_run(std::size_t peers, const HivemindStream& stream) {
  HivemindRun run;
  run.peers.assign(peers, {.samples_per_s = 100});
  run.streams.assign(peers, std::vector<HivemindStream>(peers, stream));
  run.params_m = 100;
  run.target_batch_size = 3200 * peers;
  return run;
}

TEST(Hivemind, calculation_ends_with_the_target_batch) {
  const HivemindFigures figures = simulate_hivemind(even_run(4, {}), kFree);
  EXPECT_NEAR(figures.calculation_s, 32, 1.0);
  EXPECT_NEAR(figures.samples_per_s, 12800 / figures.round_s, 13);
}

TEST(Hivemind, a_peer_sends_its_part_to_each_other_and_the_mean_back) {
  for (const std::size_t peers : {2U, 3U, 8U}) {
    const double n = static_cast<double>(peers);
    EXPECT_NEAR(simulate_hivemind(even_run(peers, {}), kFree).sent_mb_per_peer, 400 * (n - 1) / n, 1e-3);
  }
}

// The bytes of a stream, a part and a mean, one after the other in each block: what one direction carries
// while the other waits is twice its time at the most.
TEST(Hivemind, a_slow_stream_sets_the_time_of_all) {
  HivemindRun run = even_run(4, {.bytes_per_s = 1e9});
  run.streams[1][3].bytes_per_s = run.streams[3][1].bytes_per_s = 10e6;
  const double wire_s = 2 * 50e6 / 10e6;
  EXPECT_NEAR(simulate_hivemind(run, kFree).communication_s, wire_s, 0.1 * wire_s);
}

TEST(Hivemind, the_network_card_is_shared_by_the_streams) {
  HivemindRun run = even_run(5, {.bytes_per_s = 1e9});
  for (HivemindPeer& peer : run.peers) peer.nic_bytes_per_s = 100e6;
  const double wire_s = 400e6 * 4 / 5 / 100e6;
  EXPECT_NEAR(simulate_hivemind(run, kFree).communication_s, wire_s, 0.1 * wire_s);
}

TEST(Hivemind, no_round_is_shorter_than_the_matchmaking) {
  HivemindRun run = even_run(2, {.bytes_per_s = 1e9});
  run.target_batch_size = 64;
  run.matchmaking_floor_s = 20;
  EXPECT_NEAR(simulate_hivemind(run, kFree).round_s, 20 + 0.2, 0.1);
}

TEST(Hivemind, costs_add_up) {
  HivemindRun run = even_run(2, {});
  run.tensors = 50;
  HivemindCosts costs = kFree;
  const double free_s = simulate_hivemind(run, costs).communication_s;
  costs.update_s = 1;
  costs.update_s_per_m_params = 0.01;
  costs.rendezvous_s_per_tensor = 0.01;
  EXPECT_NEAR(simulate_hivemind(run, costs).communication_s - free_s, 2.5, 0.1);
}

TEST(Hivemind, a_wandering_stream_costs_more_where_more_senders_are_waited_for) {
  HivemindRun run = even_run(2, {.bytes_per_s = 26e6});
  run.params_m = 400;
  const double steady_s = simulate_hivemind(run, kFree).communication_s;
  for (auto& row : run.streams) row.assign(2, {.bytes_per_s = 26e6, .wanders = true});
  const double two = simulate_hivemind(run, kFree).communication_s / steady_s;
  HivemindRun eight = even_run(8, {.bytes_per_s = 26e6, .wanders = true});
  eight.params_m = 400;
  const double eight_s = simulate_hivemind(eight, kFree).communication_s;
  for (auto& row : eight.streams) row.assign(8, {.bytes_per_s = 26e6});
  EXPECT_GT(eight_s / simulate_hivemind(eight, kFree).communication_s, 1.2 * two);
}

TEST(Hivemind, a_seed_repeats) {
  HivemindRun run = even_run(3, {.bytes_per_s = 30e6, .wanders = true});
  const double once = simulate_hivemind(run, {}).round_s;
  EXPECT_EQ(simulate_hivemind(run, {}).round_s, once);
  run.seed = 2;
  EXPECT_NE(simulate_hivemind(run, {}).round_s, once);
}

}  // namespace
}  // namespace tw::studies
