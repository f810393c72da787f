// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/transient.h"

#include <algorithm>
#include <limits>

namespace tw::plan {
namespace {

std::vector<double> sorted_losses(const TransientRun& run) {
  std::vector<double> lost_at_s = run.lost_at_s;
  std::sort(lost_at_s.begin(), lost_at_s.end());
  return lost_at_s;
}

double speed_of(const TransientRun& run, int live) {
  return run.speeds.empty() ? live : run.speeds[static_cast<std::size_t>(live) - 1];
}

}  // namespace

double duration_s(const TransientRun& run) {
  double left = run.undisturbed_s * speed_of(run, run.workers);
  double now_s = 0;
  int live = run.workers;
  for (double lost_s : sorted_losses(run)) {
    const double until_s = std::max(now_s, lost_s);
    const double done = speed_of(run, live) * (until_s - now_s);
    if (left <= done) break;
    left -= done;
    now_s = until_s;
    if (--live == 0) return std::numeric_limits<double>::infinity();
  }
  return now_s + left / speed_of(run, live);
}

double cost_usd(const TransientRun& run, const TransientPrices& prices) {
  const double end_s = duration_s(run);
  double paid_s = end_s * run.workers;
  for (double lost_s : run.lost_at_s) paid_s -= std::max(0.0, end_s - std::max(0.0, lost_s));
  return paid_s * prices.worker_usd_per_s + end_s * prices.server_usd_per_s;
}

}  // namespace tw::plan
