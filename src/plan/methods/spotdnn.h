// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

/// The provisioner of spotDNN (IWQoS 2023): the cheapest mix of instances with one parameter server that
/// reaches a loss in time.
namespace tw::plan {

struct SpotDnnInstance {
  std::string name;
  int gpus = 1;
  int quota = 0;
  double usd_per_h = 0;
  double samples_per_s = 0;  ///< measured with one instance
  int batch_per_gpu = 0;
};

/// Constants of a trained model, in the publication's letters.
struct SpotDnnModel {
  double gradient_mb = 0;
  double worker_mb_s = 0;  ///< to the server, while alone
  double server_mb_s = 0;
  double pcie_mb_s = 0;
  double alpha1 = 0, beta1 = 0;  ///< fraction of workers that send at once: min(alpha1 sqrt(n) - beta1, 1)
  double gamma1 = 0, gamma2 = 0, gamma3 = 0,
         gamma5 = 0;   ///< ((gamma2 batch + gamma3) sqrt(n)) / (loss - gamma5) - gamma1
  double samples = 0;  ///< samples to train, regardless of loss and gammas; 0: from the gammas
};

struct SpotDnnPlan {
  std::vector<int> counts;  ///< of each instance
  double batch = 0;         ///< mean, weighted by the step rate of workers
  double samples_per_s = 0;
  double iterations = 0;
  double time_s = 0;
  double usd = 0;

  bool operator==(const SpotDnnPlan&) const = default;
};

SpotDnnPlan predict(const std::vector<SpotDnnInstance>& instances, const SpotDnnModel& model,
                    const std::vector<int>& counts, double loss);

struct SpotDnnTarget {
  double loss = 0;
  double time_s = 0;
  int most_workers = 0;  ///< 0: any number
};

/// As published: the best contiguous run in the circular list of all instances sorted by step time; nothing
/// if none is in time.
std::optional<SpotDnnPlan> published_plan(const std::vector<SpotDnnInstance>& instances,
                                          const SpotDnnModel& model, SpotDnnTarget target);

/// The cheapest of all mixes within the quotas.
std::optional<SpotDnnPlan> cheapest_plan(const std::vector<SpotDnnInstance>& instances,
                                         const SpotDnnModel& model, SpotDnnTarget target);

}  // namespace tw::plan
