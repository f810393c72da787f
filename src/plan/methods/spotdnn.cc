// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/spotdnn.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw::plan {
namespace {

/// Rounds like the published program.
double rounded(double value, double unit) { return std::nearbyint(value / unit) * unit; }

double bandwidth_mb_s(const SpotDnnModel& model, int workers) {
  if (workers * model.worker_mb_s <= model.server_mb_s) return model.worker_mb_s;
  const double at_once = std::min(model.alpha1 * std::sqrt(workers) - model.beta1, 1.0);
  return at_once * model.server_mb_s / workers + (1 - at_once) * model.worker_mb_s;
}

double alone_step_s(const SpotDnnInstance& instance) {
  return instance.batch_per_gpu * instance.gpus / instance.samples_per_s;
}

/// Step time without the transfer to the server, but with that between its GPUs.
double local_step_s(const SpotDnnInstance& instance, const SpotDnnModel& model) {
  return alone_step_s(instance) - 2 * model.gradient_mb / model.worker_mb_s +
         2 * instance.gpus * model.gradient_mb / model.pcie_mb_s;
}

bool better(const SpotDnnPlan& plan, SpotDnnTarget target, const std::optional<SpotDnnPlan>& best) {
  return plan.time_s > 0 && plan.time_s <= target.time_s && (!best || plan.usd < best->usd);
}

}  // namespace

SpotDnnPlan predict(const std::vector<SpotDnnInstance>& instances, const SpotDnnModel& model,
                    const std::vector<int>& counts, double loss) {
  const int workers = std::accumulate(counts.begin(), counts.end(), 0);
  const double exchange_s = 2 * model.gradient_mb / bandwidth_mb_s(model, workers);
  SpotDnnPlan plan{.counts = counts};
  double steps_per_s = 0;
  double usd_per_h = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const double rate = counts[i] / (local_step_s(instances[i], model) + exchange_s);
    steps_per_s += rate;
    plan.samples_per_s += rate * instances[i].batch_per_gpu * instances[i].gpus;
    usd_per_h += counts[i] * instances[i].usd_per_h;
  }
  plan.batch = rounded(plan.samples_per_s / steps_per_s, 0.1);
  const double difficulty = (model.gamma2 * plan.batch + model.gamma3) * std::sqrt(workers);
  plan.iterations = model.samples > 0 ? std::ceil(model.samples / plan.batch)
                                      : rounded(difficulty / (loss - model.gamma5) - model.gamma1, 1);
  plan.time_s = rounded(plan.batch * plan.iterations / plan.samples_per_s, 0.01);
  plan.usd = rounded(usd_per_h * plan.time_s / 3600, 1e-6);
  return plan;
}

std::optional<SpotDnnPlan> published_plan(const std::vector<SpotDnnInstance>& instances,
                                          const SpotDnnModel& model, SpotDnnTarget target) {
  std::vector<std::size_t> order(instances.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return alone_step_s(instances[a]) < alone_step_s(instances[b]);
  });
  std::vector<std::size_t> ring;
  for (std::size_t type : order)
    ring.insert(ring.end(), static_cast<std::size_t>(instances[type].quota), type);

  std::optional<SpotDnnPlan> best;
  const std::size_t most =
      target.most_workers > 0 ? static_cast<std::size_t>(target.most_workers) : ring.size();
  for (std::size_t length = 1; length < ring.size() && length <= most; ++length) {
    for (std::size_t from = 0; from < ring.size(); ++from) {
      std::vector<int> counts(instances.size());
      for (std::size_t i = 0; i < length; ++i) ++counts[ring[(from + i) % ring.size()]];
      const SpotDnnPlan plan = predict(instances, model, counts, target.loss);
      if (better(plan, target, best)) best = plan;
    }
  }
  return best;
}

std::optional<SpotDnnPlan> cheapest_plan(const std::vector<SpotDnnInstance>& instances,
                                         const SpotDnnModel& model, SpotDnnTarget target) {
  std::vector<int> counts(instances.size());
  std::optional<SpotDnnPlan> best;
  while (true) {
    std::size_t i = 0;
    while (i < counts.size() && counts[i] == instances[i].quota) counts[i++] = 0;
    if (i == counts.size()) return best;
    ++counts[i];
    const SpotDnnPlan plan = predict(instances, model, counts, target.loss);
    if (better(plan, target, best)) best = plan;
  }
}

}  // namespace tw::plan
