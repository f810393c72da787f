// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text/number.h"
#include "base/text/quantity.h"
#include "plan/methods/choice.h"
#include "plan/methods/spotdnn.h"

namespace tw::plan {
namespace {

/// The model with the publication's fitted network constants and the job's gradients and samples.
SpotDnnModel model_of(const MethodTask& task) {
  return {.gradient_mb = gradient_mb(task.market),
          .worker_mb_s = task.job.methods.spotdnn_worker_mb_s,
          .server_mb_s = task.job.methods.spotdnn_server_mb_s,
          .pcie_mb_s = task.job.methods.spotdnn_pcie_mb_s,
          .alpha1 = 0.8,
          .beta1 = 1.92,
          .samples = task.job.samples};
}

/// spotDNN needs the speed of one instance with its server; known is the one without.
SpotDnnInstance instance_of(const MethodTask& task, std::size_t candidate, const SpotDnnModel& model) {
  const Candidate& one = task.market.candidates[candidate];
  SpotDnnInstance instance{.name = machine_name(one.offer),
                           .gpus = static_cast<int>(one.offer.gpus),
                           .quota = most_of(task.market, candidate),
                           .usd_per_h = one.usd_per_h,
                           .batch_per_gpu = static_cast<int>(step_samples(task.job))};
  const double batch = instance.batch_per_gpu * instance.gpus;
  const double server_s = 2 * model.gradient_mb / model.worker_mb_s;
  instance.samples_per_s = batch / (batch / one.samples_per_s + server_s);
  return instance;
}

struct SpotDnnFound {
  std::vector<int> counts;
  SpotDnnPlan plan;
};

std::optional<SpotDnnFound> plan_at(const MethodTask& task, const market::Site& site,
                                    const SpotDnnModel& model, SpotDnnTarget target) {
  std::vector<std::size_t> places;
  std::vector<SpotDnnInstance> instances;
  for (std::size_t i = 0; i < task.market.candidates.size(); ++i) {
    const Candidate& one = task.market.candidates[i];
    if (site_of(one.offer) != site || one.offer.purchase != market::Purchase::spot) continue;
    if (one.samples_per_s <= 0) continue;
    places.push_back(i);
    instances.push_back(instance_of(task, i, model));
  }
  if (instances.empty()) return std::nullopt;
  const auto plan = published_plan(instances, model, target);
  if (!plan) return std::nullopt;
  SpotDnnFound found{std::vector<int>(task.market.candidates.size()), *plan};
  for (std::size_t i = 0; i < places.size(); ++i) found.counts[places[i]] = plan->counts[i];
  return found;
}

}  // namespace

Result<MethodChoice> choose_by_spotdnn(const MethodTask& task) {
  const SpotDnnModel model = model_of(task);
  const SpotDnnTarget target{.time_s = task.job.deadline_h > 0 ? task.job.deadline_h * 3600 : kInfinity,
                             .most_workers = task.job.peers_max};
  std::optional<SpotDnnFound> best;
  std::vector<market::Site> sites;
  for (const Candidate& one : task.market.candidates) {
    const market::Site site = site_of(one.offer);
    if (std::find(sites.begin(), sites.end(), site) != sites.end()) continue;
    sites.push_back(site);
    auto found = plan_at(task, site, model, target);
    if (found && (!best || found->plan.usd < best->plan.usd)) best = std::move(found);
  }
  if (!best) return Error{"no run of neighbours among the spot machines of one site is in time by its model"};
  return MethodChoice{
      best->counts,
      fmt::format("its model, with a parameter server: {} samples/s, {} h, {} $ for the cheapest "
                  "in time",
                  significant(best->plan.samples_per_s, 4), significant(best->plan.time_s / 3600, 3),
                  significant(best->plan.usd, 4)),
      {fmt::format("spotdnn: {} samples a step and GPU, {} MB/s a worker, {} MB/s the server",
                   significant(step_samples(task.job), 4), significant(model.worker_mb_s, 4),
                   significant(model.server_mb_s, 4))}};
}

}  // namespace tw::plan
