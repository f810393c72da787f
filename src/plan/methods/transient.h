// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

/// Training on revocable workers by the model of Li et al. (ICAC 2019): work is conserved, and speed follows
/// the live workers.
namespace tw::plan {

struct TransientRun {
  int workers = 1;
  double undisturbed_s = 0;       ///< with all workers from start to end
  std::vector<double> lost_at_s;  ///< a worker is lost this long after the start of training; any order
  /// Speed of 1, 2, ... workers, in any unit, since they wait for each other at a server. Empty: linear in
  /// their number.
  std::vector<double> speeds{};
};

/// Time until all work is done; the remaining workers go on. Infinite if the last one is lost too early.
double duration_s(const TransientRun& run);

struct TransientPrices {
  double worker_usd_per_s = 0;
  double server_usd_per_s = 0;  ///< of all parameter servers
};

/// Workers are paid from the beginning of the training until they are lost.
double cost_usd(const TransientRun& run, const TransientPrices& prices);

}  // namespace tw::plan
