// SPDX-License-Identifier: Apache-2.0
#include "plan/model/checkpoint_interval.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tw::plan {

double best_interval_s(const CheckpointCost& cost) {
  TW_CHECK(cost.checkpoint_s > 0 && cost.mtbf_s > 0);
  // With x = t/M = 1 + W0(-exp(-1 - c)): x + log(1 - x) = -c. Its left side falls from 0 to -inf on [0, 1),
  // and this form loses no digits for small c. Newton's method descends from the right of the root.
  const double c = cost.checkpoint_s / cost.mtbf_s;
  if (c > 30) return cost.mtbf_s;  // exact to all digits
  double x = std::min(std::sqrt(2 * c), 1 - std::exp(-1 - c) / 2);
  for (int i = 0; i < 100; ++i) {
    const double slope = -x / (1 - x);
    const double step = (x + std::log1p(-x) + c) / slope;
    x = std::clamp(x - step, x / 2, (1 + x) / 2);
    if (std::abs(step) <= 1e-15 * x) break;
  }
  return cost.mtbf_s * x;
}

double young_interval_s(const CheckpointCost& cost) { return std::sqrt(2 * cost.checkpoint_s * cost.mtbf_s); }

double daly_interval_s(const CheckpointCost& cost) {
  if (cost.checkpoint_s >= 2 * cost.mtbf_s) return cost.mtbf_s;
  const double half_ratio = cost.checkpoint_s / (2 * cost.mtbf_s);
  return young_interval_s(cost) * (1 + std::sqrt(half_ratio) / 3 + half_ratio / 9) - cost.checkpoint_s;
}

double expected_wall_per_work(const CheckpointCost& cost, double interval_s) {
  TW_CHECK(interval_s > 0);
  const double m = cost.mtbf_s;
  return std::exp(cost.restart_s / m) * m * std::expm1((interval_s + cost.checkpoint_s) / m) / interval_s;
}

double remote_checkpoint_s(double megabytes) { return 3.7512 + 0.020006 * megabytes; }

}  // namespace tw::plan
