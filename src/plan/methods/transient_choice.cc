// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text/number.h"
#include "base/text/quantity.h"
#include "plan/methods/choice.h"
#include "plan/methods/parameter_server.h"
#include "plan/methods/transient.h"

namespace tw::plan {
namespace {

constexpr double kServerUsdPerH = 0.1429;  ///< of the publication's parameter server, on GCP in 2019

/// Time at which this share of such machines is gone.
double gone_at_s(const market::LifetimeLaw& law, double share) {
  double early = 0, late = 1;
  while (law.gone_by(late) < share && late < 1e6) late *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (early + late) / 2;
    (law.gone_by(middle) < share ? early : late) = middle;
  }
  return late * 3600;
}

/// Loss times by the law, spread evenly over the machines; none is replaced.
std::vector<double> losses_of(const Candidate& one, int workers) {
  std::vector<double> lost_at_s;
  for (int k = 0; k < workers; ++k) lost_at_s.push_back(gone_at_s(one.lifetimes, (k + 0.5) / workers));
  return lost_at_s;
}

struct TransientFound {
  std::size_t candidate = 0;
  int workers = 0;
  double hours = 0;
  double usd = 0;
};

TransientFound cluster_of(const MethodTask& task, std::size_t candidate, int workers) {
  const Candidate& one = task.market.candidates[candidate];
  const double batch = step_samples(task.job) * one.offer.gpus;
  const double server_s = server_step_s(task.market.tensors, gradient_mb(task.market));
  const double speed = batch * steps_per_s({{workers, batch / one.samples_per_s}}, server_s);
  const TransientRun run{
      .workers = workers, .undisturbed_s = task.job.samples / speed, .lost_at_s = losses_of(one, workers)};
  const double usd = cost_usd(run, {one.usd_per_h / 3600, kServerUsdPerH / 3600});
  return {candidate, workers, duration_s(run) / 3600, usd};
}

}  // namespace

Result<MethodChoice> choose_by_transient(const MethodTask& task) {
  std::optional<TransientFound> best;
  const auto& all = task.market.candidates;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].offer.purchase != market::Purchase::spot || all[i].samples_per_s <= 0) continue;
    for (int workers = 1; workers <= most_of(task.market, i); ++workers) {
      const TransientFound found = cluster_of(task, i, workers);
      if (std::isinf(found.hours)) continue;
      if (task.job.deadline_h > 0 && found.hours > task.job.deadline_h) continue;
      if (!best || found.usd < best->usd) best = found;
    }
  }
  if (!best) return Error{"by its model no cluster of spot machines, none of which comes back, ends in time"};
  MethodChoice choice{std::vector<int>(all.size()), "", {}};
  choice.counts[best->candidate] = best->workers;
  choice.reason = fmt::format(
      "its model, with a parameter server and without replacements: {} h, {} $ for the cheapest in "
      "time",
      significant(best->hours, 3), significant(best->usd, 4));
  choice.assumptions.push_back(fmt::format("transient: {} samples a step and GPU, a server of {} $/h",
                                           significant(step_samples(task.job), 4), kServerUsdPerH));
  return choice;
}

}  // namespace tw::plan
