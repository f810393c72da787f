// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/prng.h"
#include "plan/search.h"

/// How long the planner searches: `make bench`, then build/bench/bench_plan_search.
namespace tw {
namespace {

/// Offers of few GPU types at different prices over sites in four areas; traffic between areas is slow and
/// dear.
Space market(int offers, std::size_t sites, int most_peers) {
  Prng random(1);
  Space space{.sites = sites, .most_peers = most_peers, .samples_per_round = 32768};
  const double speeds[] = {15, 45, 60, 140, 250};
  const double prices[] = {0.15, 0.35, 0.6, 1.2, 2.4};
  for (int i = 0; i < offers; ++i) {
    const std::size_t type = random.below(5);
    space.choices.push_back({.site = random.below(sites),
                             .samples_per_s = speeds[type],
                             .usd_per_h = prices[type] * (0.6 + 1.2 * random.uniform()),
                             .most = i % 3 == 0 ? 8 : most_peers});
  }
  space.least = [](int peers) { return Averaging{.seconds = 10.0 * (peers - 1) / peers, .usd = 0}; };
  space.averaging = [=](const std::vector<int>& peers) {
    const double all = std::accumulate(peers.begin(), peers.end(), 0);
    Averaging round{.seconds = 5 * 2 * (all - 1) / all};
    for (std::size_t a = 0; a < sites; ++a) {
      for (std::size_t b = 0; b < sites; ++b) {
        if (a == b || peers[a] == 0 || peers[b] == 0) continue;
        const bool near = a % 4 == b % 4;
        round.seconds = std::max(round.seconds, (near ? 7 : 15) * 2 * (all - 1) / all);
        round.usd += (near ? 0.01 : 0.08) * 1.1 * peers[a] * peers[b] / all;
      }
    }
    return round;
  };
  return space;
}

void search_market(benchmark::State& state) {
  const auto most_peers = static_cast<int>(state.range(1));
  const Space space = market(static_cast<int>(state.range(0)), 40, most_peers);
  const Objective fastest = [](const Score& score) {
    return score.usd_per_h() <= 20 ? 1e6 / score.samples_per_s : std::numeric_limits<double>::infinity();
  };
  const Objective cheapest = [](const Score& score) {
    return score.samples_per_s >= 1000 ? score.usd_per_million() : std::numeric_limits<double>::infinity();
  };
  SearchResult result;
  for (auto _ : state) result = search(space, state.range(2) == 0 ? fastest : cheapest);
  state.counters["gap"] = result.gap();
  state.counters["exact"] = result.exact;
  state.counters["steps"] = static_cast<double>(result.steps);
}

BENCHMARK(search_market)
    ->ArgNames({"offers", "peers", "cheapest"})
    ->Args({8, 8, 0})
    ->Args({100, 16, 0})
    ->Args({500, 64, 0})
    ->Args({500, 64, 1})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace tw

BENCHMARK_MAIN();
