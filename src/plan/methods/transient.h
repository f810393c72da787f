// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

/// Training on revocable workers as Li et al. found it (ICAC 2019): work is conserved, and speed follows the
/// the live workers.
namespace tw::plan {

struct TransientRun {
  int workers = 1;
  double undisturbed_s = 0;       ///< with all workers from start to end
  std::vector<double> lost_at_s;  ///< a worker goes, so long after the training began; in any order
  /// With 1, 2, ... workers, in any unit: they wait for each other at a server. Empty: as many times that of
  /// one.
  std::vector<double> speeds{};
};

/// Until all work is done; those that are left go on as before. Infinite when the last one goes too early.
double duration_s(const TransientRun& run);

struct TransientPrices {
  double worker_usd_per_s = 0;
  double server_usd_per_s = 0;  ///< of all parameter servers
};

/// Workers are paid from the beginning of the training until they go.
double cost_usd(const TransientRun& run, const TransientPrices& prices);

}  // namespace tw::plan
