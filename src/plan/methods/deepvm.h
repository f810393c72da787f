// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

/// The recommendations of DeepVM (Kim et al., CCGrid 2024) from its own inputs, and with a corrected
/// objective. Its four stages: the user's price limit; FLOPP, the score of a GPU machine per dollar; an
/// architecture; the best one. The architecture has one on-demand GPU machine (single anchor), or on-demand
/// CPU machines that hold checkpoints for spot machines (tiering).
namespace tw::plan {

/// Speed of n machines relative to one: c / (1 + exp(-a (n - b))), as fitted in the publication.
struct SigmoidSpeed {
  double a = 0;
  double b = 1;
  double c = 1;

  double speed_up(double n) const;

  /// The sigmoid divided by its tangent at the inflection point: 1 up to b machines, less beyond.
  double scaling_factor(double n) const;
};

struct GpuMachine {
  std::string name;
  std::string quota_class;
  int vcpus = 4;
  double network_gbps = 0;
  double flops_score = 0;
  double on_demand_usd_h = 0;
  double spot_usd_h = 0;
  SigmoidSpeed speed;
  std::map<int, double> measured_s;  ///< training time by number of machines; empty: not measured
};

struct CpuMachine {
  std::string name;
  std::string quota_class;
  int vcpus = 4;
  double network_gbps = 0;
  double memory_gib = 0;
  double on_demand_usd_h = 0;
};

struct VcpuQuota {
  int on_demand = 0;
  int spot = 0;
};

struct DeepVmMarket {
  std::vector<GpuMachine> workers;  ///< this order, and that of the anchors, decides ties
  std::vector<CpuMachine> anchors;
  std::map<std::string, VcpuQuota> quotas;  ///< by class; empty: `most` bounds every count
  int most = 256;                           ///< counts stay below it
  std::map<double, int>
      saturation;  ///< workers of an anchor stay below it, by the lesser bandwidth in Gbit/s
  bool single_anchor_wins_ties = false;
};

enum class DeepVmPolicy { cost_first, performance_first, without_scaling, with_scaling };

struct DeepVmRequest {
  double usd_per_h = 0;  ///< the price limit
  double buffers = 0.5;  ///< checkpoints that an anchor holds
  double checkpoint_gib = 2;
};

struct DeepVmCluster {
  std::string worker;
  int workers = 0;     ///< including the on-demand one of a single anchor
  std::string anchor;  ///< empty: single anchor
  int anchors = 0;
  double usd_per_h = 0;
  double scaling_factor = 1;
  double objective = 0;  ///< FLOPP x workers, and x scaling factor where the policy scales
  double score = 0;      ///< flops_score x workers x scaling factor
};

/// As published, best first: one cluster, with_scaling up to three; empty: nothing is affordable. As there,
/// amounts are binary fractions compared without tolerance: a rounding error may exclude a cluster.
std::vector<DeepVmCluster> recommend(const DeepVmMarket& market, const DeepVmRequest& request,
                                     DeepVmPolicy policy);

/// The published objective multiplies score per dollar by the count, which is neither speed nor cost. The
/// next two functions use the training time from measured_s, linear in speed between measured counts, and its
/// cost in dollars.
struct DeepVmOutcome {
  DeepVmCluster cluster;
  double training_s = 0;
  double usd = 0;
};

/// Fewest dollars within the limit per hour; a single spot machine is a candidate, too.
std::optional<DeepVmOutcome> least_usd(const DeepVmMarket& market, const DeepVmRequest& request);

/// Shortest training within the limit; of equal ones the cheapest.
std::optional<DeepVmOutcome> fastest(const DeepVmMarket& market, const DeepVmRequest& request);

}  // namespace tw::plan
