// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "market/lifetimes.h"
#include "plan/search/search.h"

/// Outcome of a plan whose machines are taken and replaced, and are not as fast as predicted: time and cost
/// over many random draws of lifetimes and prediction errors.
namespace tw::plan {

struct PlannedMachine {
  double samples_per_s = 0;
  double factor = 1;  ///< of the 80 % range of that speed
  double usd_per_h = 0;
  market::LifetimeLaw lifetimes;
  double wait_s = 0;    ///< from the request until it runs and is paid
  double join_s = 0;    ///< from then until it works
  bool notice = false;  ///< long enough to hand over its sums
  bool saves = false;   ///< its notice is long enough for a checkpoint
  bool spot = false;    ///< shocks of its failure domain hit it
  int domain = 0;
};

struct PlannedRun {
  std::vector<PlannedMachine> machines;  ///< one for each peer
  double samples = 0;
  double samples_per_round = 0;
  Averaging round;          ///< with all machines; with fewer it is assumed to take as long
  double round_factor = 1;  ///< of the 80 % range of its time
  double usd_per_sample = 0;
  market::ZoneShocks shocks;         ///< of each failure domain
  double checkpoint_s = 0;           ///< time to write one
  double checkpoint_interval_s = 0;  ///< work between two; 0: the loss of all peers at once costs none
};

struct Spread {
  double p10 = 0, p50 = 0, p90 = 0;
};

struct Outcomes {
  std::vector<double> hours;  ///< by scenario, until all samples are trained
  std::vector<double> usd;
  double losses = 0;  ///< machines taken, on average
};

inline constexpr int kScenarios = 256;  ///< meaningful from 200 on

/// Scenario s of any plan has the same random draws: machine m uses the seed (s, m). All its predictions err
/// by the same share of their ranges, for one model of the machines made them.
Outcomes play_scenarios(const PlannedRun& run, int scenarios = kScenarios);

/// The luck that all but this share of the scenarios exceed: how far predictions err, in standard deviations.
double worst_luck(double risk, int scenarios = kScenarios);

/// The error that this luck makes of a prediction: within 1 / factor and factor in 80 % of the scenarios.
double error_of(double factor, double luck);

Spread spread_of(const std::vector<double>& values);

}  // namespace tw::plan
