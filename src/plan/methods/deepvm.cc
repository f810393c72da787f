// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/deepvm.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tw::plan {
namespace {

constexpr std::size_t kRanks = 3;  // clusters that with_scaling returns

/// Floor of the exact quotient x / y; the rounded quotient is a whole number more often than the exact one.
int whole_times(double x, double y) { return static_cast<int>(std::llround((x - std::fmod(x, y)) / y)); }

/// Upper limit, exclusive, of counts of a class.
int count_limit(const DeepVmMarket& market, const std::string& quota_class, int vcpus, bool spot) {
  if (market.quotas.empty()) return market.most;
  const auto quota = market.quotas.find(quota_class);
  if (quota == market.quotas.end()) return 0;
  return (spot ? quota->second.spot : quota->second.on_demand) / vcpus;
}

int spot_limit(const DeepVmMarket& market, const GpuMachine& worker) {
  return count_limit(market, worker.quota_class, worker.vcpus, true);
}

/// The entry of the largest bandwidth in the table that is not above; 0: below all.
int saturation_point(const DeepVmMarket& market, double gbps) {
  const auto above = market.saturation.upper_bound(gbps);
  return above == market.saturation.begin() ? 0 : std::prev(above)->second;
}

double flopp(const GpuMachine& worker) { return worker.flops_score / worker.spot_usd_h * 3600; }

DeepVmCluster cluster_of(const GpuMachine& worker, int count, bool scaled) {
  DeepVmCluster cluster{.worker = worker.name, .workers = count, .anchor = ""};
  cluster.scaling_factor = worker.speed.scaling_factor(count);
  cluster.objective = flopp(worker) * (scaled ? cluster.scaling_factor : 1) * count;
  cluster.score = worker.flops_score * count * cluster.scaling_factor;
  return cluster;
}

DeepVmCluster single_anchor(const GpuMachine& worker, int count, bool scaled) {
  DeepVmCluster cluster = cluster_of(worker, count, scaled);
  // The published program multiplies in this order; the last bit decides between architectures.
  cluster.objective = flopp(worker) * count * (scaled ? cluster.scaling_factor : 1);
  cluster.usd_per_h = worker.spot_usd_h * (count - 1) + worker.on_demand_usd_h;
  return cluster;
}

std::vector<DeepVmCluster> single_anchors(const DeepVmMarket& market, double limit_usd_h, bool scaled) {
  std::vector<DeepVmCluster> clusters;
  for (const GpuMachine& worker : market.workers) {
    for (int n = 2; n < spot_limit(market, worker); ++n) {
      const DeepVmCluster cluster = single_anchor(worker, n, scaled);
      if (cluster.usd_per_h > limit_usd_h) break;
      clusters.push_back(cluster);
    }
  }
  return clusters;
}

struct TierTypes {
  const GpuMachine& worker;
  const CpuMachine& anchor;
};

/// Adds all clusters of these two types.
void add_tiers(const DeepVmMarket& market, const TierTypes& types, double limit_usd_h, bool scaled,
               std::vector<DeepVmCluster>& clusters) {
  const auto& [worker, anchor] = types;
  const int below = saturation_point(market, std::min(worker.network_gbps, anchor.network_gbps));
  const int most_anchors = count_limit(market, anchor.quota_class, anchor.vcpus, false);
  for (int n = 1; n < spot_limit(market, worker); ++n) {
    DeepVmCluster cluster = cluster_of(worker, n, scaled);
    cluster.anchor = anchor.name;
    for (int m = 1; m < most_anchors; ++m) {
      cluster.usd_per_h = worker.spot_usd_h * n + anchor.on_demand_usd_h * m;
      if (cluster.usd_per_h > limit_usd_h) break;
      if (n >= below * m) continue;
      cluster.anchors = m;
      clusters.push_back(cluster);
    }
  }
}

std::vector<DeepVmCluster> tiers(const DeepVmMarket& market, const DeepVmRequest& request, bool scaled) {
  std::vector<DeepVmCluster> clusters;
  for (const GpuMachine& worker : market.workers)
    for (const CpuMachine& anchor : market.anchors)
      if (anchor.memory_gib >= request.checkpoint_gib * request.buffers)
        add_tiers(market, {worker, anchor}, request.usd_per_h, scaled, clusters);
  return clusters;
}

/// The best; among equal objectives the earlier one comes first.
std::vector<DeepVmCluster> best_of(std::vector<DeepVmCluster> clusters, std::size_t most) {
  std::stable_sort(clusters.begin(), clusters.end(),
                   [](const DeepVmCluster& a, const DeepVmCluster& b) { return a.objective > b.objective; });
  clusters.resize(std::min(clusters.size(), most));
  return clusters;
}

std::vector<DeepVmCluster> best_of_both(const DeepVmMarket& market, const DeepVmRequest& request,
                                        bool scaled) {
  const bool single_first = !scaled || market.single_anchor_wins_ties;
  std::vector<DeepVmCluster> first = single_anchors(market, request.usd_per_h, scaled);
  std::vector<DeepVmCluster> second = tiers(market, request, scaled);
  if (!single_first) std::swap(first, second);
  first.insert(first.end(), second.begin(), second.end());
  return best_of(std::move(first), scaled ? kRanks : 1);
}

/// As many spot machines beside the on-demand one as the limit allows; nothing if not even one.
std::optional<DeepVmCluster> as_many_as_paid(const DeepVmMarket& market, const GpuMachine& worker,
                                             double limit_usd_h) {
  if (limit_usd_h < worker.on_demand_usd_h + worker.spot_usd_h) return std::nullopt;
  int spot = whole_times(limit_usd_h - worker.on_demand_usd_h, worker.spot_usd_h);
  if (!market.quotas.empty()) spot = std::min(spot, spot_limit(market, worker) - 1);
  const DeepVmCluster cluster = single_anchor(worker, spot + 1, true);
  if (cluster.usd_per_h > limit_usd_h || cluster.workers < 2) return std::nullopt;
  return cluster;
}

std::vector<DeepVmCluster> cost_first(const DeepVmMarket& market, double limit_usd_h) {
  std::vector<DeepVmCluster> most;
  for (const GpuMachine& worker : market.workers) {
    const auto cluster = as_many_as_paid(market, worker, limit_usd_h);
    if (cluster && (most.empty() || cluster->workers > most.front().workers)) most = {*cluster};
  }
  return most;
}

std::vector<DeepVmCluster> performance_first(const DeepVmMarket& market, double limit_usd_h) {
  std::vector<GpuMachine> workers = market.workers;
  std::stable_sort(workers.begin(), workers.end(),
                   [](const GpuMachine& a, const GpuMachine& b) { return a.flops_score > b.flops_score; });
  for (const GpuMachine& worker : workers)
    if (const auto cluster = as_many_as_paid(market, worker, limit_usd_h)) return {*cluster};
  return {};
}

/// Linear in speed between measured counts; nothing beyond them.
std::optional<double> measured_time_s(const GpuMachine& worker, int count) {
  const auto after = worker.measured_s.lower_bound(count);
  if (after == worker.measured_s.end()) return std::nullopt;
  if (after->first == count) return after->second;
  if (after == worker.measured_s.begin()) return std::nullopt;
  const auto before = std::prev(after);
  const double part = static_cast<double>(count - before->first) / (after->first - before->first);
  return 1 / ((1 - part) / before->second + part / after->second);
}

/// All clusters within the limit whose training time is known.
std::vector<DeepVmOutcome> outcomes(const DeepVmMarket& market, const DeepVmRequest& request) {
  std::vector<DeepVmCluster> clusters = single_anchors(market, request.usd_per_h, true);
  for (const DeepVmCluster& cluster : tiers(market, request, true)) clusters.push_back(cluster);
  for (const GpuMachine& worker : market.workers) {
    DeepVmCluster alone = cluster_of(worker, 1, true);
    alone.usd_per_h = worker.spot_usd_h;
    if (alone.usd_per_h <= request.usd_per_h) clusters.push_back(alone);
  }
  std::vector<DeepVmOutcome> known;
  for (const DeepVmCluster& cluster : clusters) {
    const auto worker = std::find_if(market.workers.begin(), market.workers.end(),
                                     [&](const GpuMachine& one) { return one.name == cluster.worker; });
    const auto time_s = measured_time_s(*worker, cluster.workers);
    if (time_s) known.push_back({cluster, *time_s, *time_s * cluster.usd_per_h / 3600});
  }
  return known;
}

template <class Key>
std::optional<DeepVmOutcome> least_by(const std::vector<DeepVmOutcome>& known, Key key) {
  const auto least = std::min_element(known.begin(), known.end(),
                                      [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return least == known.end() ? std::nullopt : std::optional(*least);
}

}  // namespace

double SigmoidSpeed::speed_up(double n) const { return c / (1 + std::exp(-a * (n - b))); }

double SigmoidSpeed::scaling_factor(double n) const {
  if (n <= b) return 1;
  return speed_up(n) / (c * a / 4 * (n - b) + c / 2);
}

std::vector<DeepVmCluster> recommend(const DeepVmMarket& market, const DeepVmRequest& request,
                                     DeepVmPolicy policy) {
  switch (policy) {
    case DeepVmPolicy::cost_first:
      return cost_first(market, request.usd_per_h);
    case DeepVmPolicy::performance_first:
      return performance_first(market, request.usd_per_h);
    case DeepVmPolicy::without_scaling:
    case DeepVmPolicy::with_scaling:
      return best_of_both(market, request, policy == DeepVmPolicy::with_scaling);
  }
  return {};
}

std::optional<DeepVmOutcome> least_usd(const DeepVmMarket& market, const DeepVmRequest& request) {
  return least_by(outcomes(market, request),
                  [](const DeepVmOutcome& one) { return std::tuple(one.usd, one.training_s); });
}

std::optional<DeepVmOutcome> fastest(const DeepVmMarket& market, const DeepVmRequest& request) {
  return least_by(outcomes(market, request),
                  [](const DeepVmOutcome& one) { return std::tuple(one.training_s, one.usd); });
}

}  // namespace tw::plan
