// SPDX-License-Identifier: Apache-2.0
//
// The same machines and paths with tradewind's own protocol: the real session code in the simulator, a short
// vector standing for the real one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "sim/virtual/world.h"
#include "studies/hivemind.h"

namespace tw::bench {

struct TradewindFigures {
  double round_s = 0;
  double communication_s = 0;  ///< of a round what is not calculation
};

/// A site for each machine, so that each pair has a link of its own.
inline sim::WorldOptions world_options(const studies::HivemindRun& run, int streams) {
  constexpr std::uint64_t kFloats = 1024;
  constexpr std::uint64_t kSegmentFloats = 2;
  sim::WorldOptions options;
  options.run.batch.size = run.target_batch_size;
  options.run.microbatch = run.peers.front().microbatch;
  options.run.codec = codec::Codec::fp16;
  options.run.rounds = static_cast<Round>(run.rounds);
  options.model.parameters = kFloats;
  options.segment_length = kSegmentFloats;
  options.wait_for = static_cast<std::uint32_t>(run.peers.size());
  options.bulk_scale = run.params_m * 1e6 / static_cast<double>(kFloats);
  options.sites.assign(run.peers.size(), sim::SiteSpec{});
  options.links.clear();
  for (std::size_t a = 0; a < run.peers.size(); ++a) {
    options.sites[a].name = fmt::format("machine {}", a);
    for (std::size_t b = 0; b < a; ++b) {
      const double nic = std::min(run.peers[a].nic_bytes_per_s, run.peers[b].nic_bytes_per_s);
      const double one = std::min(run.streams[a][b].bytes_per_s, run.streams[b][a].bytes_per_s);
      const double rate = std::min(nic, streams * one);
      // Wide enough never to be the bound: the rate is what the windows of all streams allow.
      const double window = 8 * std::max(rate * run.streams[a][b].rtt_s, 1e6);
      options.links.push_back({.from = fmt::format("machine {}", b),
                               .to = fmt::format("machine {}", a),
                               .latency_s = run.streams[a][b].rtt_s / 2,
                               .jitter = 0,
                               .bytes_per_s = rate,
                               .window_bytes = window});
    }
  }
  return options;
}

/// Rounds after the first; nothing when they do not come to an end.
inline std::optional<TradewindFigures> simulate_tradewind(const studies::HivemindRun& run, int streams) {
  using std::chrono::milliseconds;
  sim::World world(world_options(run, streams));
  // The executors of the simulator add up to a tenth to the time of a job, a twentieth on average.
  constexpr double kJitterMean = 1.05;
  double speed = 0;
  for (std::size_t i = 0; i < run.peers.size(); ++i) {
    const double nic = run.peers[i].nic_bytes_per_s;
    world.add_peer(sim::PeerSpec{static_cast<int>(i), run.peers[i].samples_per_s * kJitterMean, {nic, nic}});
    speed += run.peers[i].samples_per_s;
  }
  const Instant limit = world.now() + std::chrono::hours(24);
  std::optional<Instant> first, last;
  Round seen = 0;
  while (seen < static_cast<Round>(run.rounds) && world.now() < limit && !world.alive().empty()) {
    world.run_until(world.now() + milliseconds(50));
    const wire::Record* newest = world.referee().ledger().newest();
    if (newest == nullptr || newest->round == seen) continue;
    seen = newest->round;
    last = world.now();
    if (!first) first = last;
  }
  if (seen < static_cast<Round>(run.rounds)) return std::nullopt;
  TradewindFigures figures;
  figures.round_s = to_seconds(*last - *first) / (run.rounds - 1);
  figures.communication_s = figures.round_s - static_cast<double>(run.target_batch_size) / speed;
  return figures;
}

}  // namespace tw::bench
