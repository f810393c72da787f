// SPDX-License-Identifier: Apache-2.0
//
// Fits the constants of the Hivemind configuration to published runs, and judges them on runs left out.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "studies/hivemind_tables.h"

namespace tw::bench {

using Runs = std::vector<const studies::PublishedRun*>;

using Cost = double studies::HivemindCosts::*;

inline const std::vector<Cost> kFitted{
    &studies::HivemindCosts::handling_s_per_mb, &studies::HivemindCosts::rendezvous_s_per_tensor,
    &studies::HivemindCosts::update_s,          &studies::HivemindCosts::update_s_per_m_params,
    &studies::HivemindCosts::stream_gain,       &studies::HivemindCosts::fast_host,
};

inline studies::HivemindFigures simulate(const studies::Reference& reference,
                                         const studies::PublishedRun& run,
                                         const studies::HivemindCosts& costs, int rounds,
                                         double passes = studies::kAccumulationPasses) {
  Result<studies::HivemindRun> simulated = hivemind_run(reference, run, costs, passes);
  simulated.value().rounds = rounds;
  return simulate_hivemind(simulated.value(), costs);
}

/// Quadratic up to `bend`, linear beyond: one odd run must not rule.
inline double huber(double error, double bend) {
  const double size = std::abs(error);
  return size < bend ? size * size / 2 : bend * (size - bend / 2);
}

/// Relative error of the communication times.
inline double loss(const studies::Reference& reference, const Runs& runs,
                   const studies::HivemindCosts& costs) {
  double sum = 0;
  for (const studies::PublishedRun* run : runs) {
    const double seconds = simulate(reference, *run, costs, 2).communication_s;
    sum += huber(std::log(seconds / run->communication_s), 0.08);
  }
  return sum;
}

/// Coordinate descent with steps that grow where they help.
inline studies::HivemindCosts fit(const studies::Reference& reference, const Runs& runs,
                                  studies::HivemindCosts costs, const std::vector<Cost>& fitted, int sweeps) {
  double best = loss(reference, runs, costs);
  std::vector<double> step(fitted.size(), 0.1);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t i = 0; i < fitted.size(); ++i) {
      bool better = false;
      for (const double factor : {1 + step[i], 1 / (1 + step[i])}) {
        studies::HivemindCosts tried = costs;
        tried.*fitted[i] *= factor;
        const double value = loss(reference, runs, tried);
        if (value >= best) continue;
        best = value;
        costs = tried;
        better = true;
        break;
      }
      step[i] *= better ? 1.4 : 0.5;
    }
  }
  return costs;
}

/// The passes over memory that bring the simulated accumulation speeds nearest to the measured ones.
inline double fit_passes(const studies::Reference& reference, const Runs& runs) {
  double best = 0;
  double best_passes = 0;
  for (double passes = 0; passes < 12; passes += 0.1) {
    double sum = 0;
    for (const studies::PublishedRun* run : runs) {
      double speed = 0;
      for (const plan::PeerGroup& group : run->peers) {
        speed += group.count * speed_from_baseline(reference, *run, group.gpu, passes).value_or(0);
      }
      sum += huber(std::log(speed / run->local_samples_per_s), 0.02);
    }
    if (passes == 0 || sum < best) {
      best = sum;
      best_passes = passes;
    }
  }
  return best_passes;
}

/// The runs on premises give their one constant, all others the rest.
inline std::pair<studies::HivemindCosts, double> fit_all(const studies::Reference& reference,
                                                         const Runs& runs, studies::HivemindCosts costs) {
  const auto on_premises = [](const studies::PublishedRun* run) {
    return run->group == "E" || run->group == "F";
  };
  Runs cloud, mixed;
  std::partition_copy(runs.begin(), runs.end(), std::back_inserter(mixed), std::back_inserter(cloud),
                      on_premises);
  costs = fit(reference, cloud, costs, kFitted, 8);
  costs = fit(reference, mixed, costs, {&studies::HivemindCosts::on_premises_gain}, 8);
  return {costs, fit_passes(reference, cloud)};
}

}  // namespace tw::bench
