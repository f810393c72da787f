// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/prng.h"
#include "plan/search/search.h"

/// How long the planner searches: `make bench`, then build/bench/bench_plan_search.
namespace tw {
namespace {

double seconds_between(std::size_t a, std::size_t b) { return a == b ? 5 : a % 4 == b % 4 ? 7 : 15; }

double usd_between(std::size_t a, std::size_t b) { return a == b ? 0 : a % 4 == b % 4 ? 0.011 : 0.088; }

plan::Averaging least_averaging(const plan::PartialPlan& plan) {
  const double had = std::accumulate(plan.peers.begin(), plan.peers.end(), 0);
  const double all = had + plan.more;
  double seconds = 5;
  double usd = 0;
  double others_seconds = plan.more > 0 ? 1e300 : 0;
  double others_usd = plan.more > 0 ? 1e300 : 0;
  for (std::size_t a = 0; a < plan.peers.size(); ++a) {
    const bool open = plan.more > 0 && plan.open[a];
    if (plan.peers[a] == 0 && !open) continue;
    double farthest = 5;
    double all_usd = 0;
    for (std::size_t b = 0; b < plan.peers.size(); ++b) {
      if (plan.peers[b] == 0) continue;
      farthest = std::max(farthest, seconds_between(a, b));
      all_usd += plan.peers[b] * usd_between(a, b);
    }
    if (plan.peers[a] > 0) seconds = std::max(seconds, farthest);
    usd += plan.peers[a] * all_usd;
    if (!open) continue;
    others_seconds = std::min(others_seconds, farthest);
    others_usd = std::min(others_usd, 2 * plan.more * all_usd);
  }
  usd += others_usd + plan.more * std::max(0, plan.more - plan.most_each) * usd_between(0, 4);
  return plan::Averaging{.seconds = std::max(seconds, others_seconds) * 2 * (all - 1) / all,
                         .usd = usd / all};
}

/// Offers of few GPU types at different prices over sites in four areas; traffic between areas is slow and
/// dear.
plan::Space market(int offers, std::size_t sites, int most_peers, bool limited) {
  Prng random(1);
  plan::Space space{.sites = sites, .most_peers = most_peers, .samples_per_round = 32768};
  const double speeds[] = {15, 45, 60, 140, 250};
  const double prices[] = {0.15, 0.35, 0.6, 1.2, 2.4};
  for (int i = 0; i < offers; ++i) {
    const std::size_t type = random.below(5);
    const std::size_t site = random.below(sites);
    space.choices.push_back(
        {.site = site,
         .samples_per_s = speeds[type],
         .usd_per_h = prices[type] * (0.6 + 1.2 * random.uniform()),
         .most = i % 3 == 0 ? 8 : most_peers,
         .quotas = limited && type % 3 > 0 ? std::vector{static_cast<int>(type % 3) - 1} : std::vector<int>{},
         .domain = static_cast<int>(site)});
  }
  if (limited) space.quotas = {12, 20};
  if (limited) space.least_domains = 3;
  space.least = least_averaging;
  space.averaging = [=](const std::vector<int>& peers) {
    const double all = std::accumulate(peers.begin(), peers.end(), 0);
    plan::Averaging round;
    for (std::size_t a = 0; a < sites; ++a) {
      for (std::size_t b = 0; b < sites; ++b) {
        if (peers[a] == 0 || peers[b] == 0) continue;
        round.seconds = std::max(round.seconds, seconds_between(a, b) * 2 * (all - 1) / all);
        round.usd += usd_between(a, b) * peers[a] * peers[b] / all;
      }
    }
    return round;
  };
  return space;
}

void search_market(benchmark::State& state) {
  const auto most_peers = static_cast<int>(state.range(1));
  const plan::Space space = market(static_cast<int>(state.range(0)), 40, most_peers, state.range(3) != 0);
  // Rounds are paced where traffic would cost more than is left of 20 $/h, as in `tw plan`.
  const plan::Objective fastest = [](const plan::Score& score) {
    const double left = 20 - score.vm_usd_per_h;
    if (left <= 0) return std::numeric_limits<double>::infinity();
    return 1e6 / std::min(score.samples_per_s, left / (3600 * std::max(score.usd_per_sample, 1e-12)));
  };
  const plan::Objective cheapest = [](const plan::Score& score) {
    return score.samples_per_s >= 1000 ? score.usd_per_h() / score.samples_per_s
                                       : std::numeric_limits<double>::infinity();
  };
  plan::SearchResult result;
  for (auto _ : state) result = search(space, state.range(2) == 0 ? fastest : cheapest);
  if (result.best.empty()) state.SkipWithError("no plan");
  state.counters["gap"] = result.gap();
  state.counters["exact"] = result.exact;
  state.counters["steps"] = static_cast<double>(result.steps);
}

BENCHMARK(search_market)
    ->ArgNames({"offers", "peers", "cheapest", "limited"})
    ->Args({8, 8, 0, 0})
    ->Args({100, 16, 0, 0})
    ->Args({500, 64, 0, 0})
    ->Args({500, 64, 1, 0})
    ->Args({500, 64, 0, 1})
    ->Args({500, 64, 1, 1})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace tw

BENCHMARK_MAIN();
