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
  double factor = 1;  ///< of the 80 % range of that speed; all machines of a kind have the same error
  int kind = 0;
  double usd_per_h = 0;
  market::LifetimeLaw lifetimes;
  double wait_s = 0;    ///< from the request until it runs and is paid
  double join_s = 0;    ///< from then until it works
  bool notice = false;  ///< long enough to hand over its sums
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
  market::ZoneShocks shocks;  ///< of each failure domain
};

struct Spread {
  double p10 = 0, p50 = 0, p90 = 0;
};

struct Outcomes {
  std::vector<double> hours;  ///< by scenario, until all samples are trained
  std::vector<double> usd;
  double losses = 0;  ///< machines taken, on average
};

/// Scenario s of any plan has the same random draws: machine m uses the seed (s, m). Meaningful from 200 on.
Outcomes play_scenarios(const PlannedRun& run, int scenarios = 256);

Spread spread_of(const std::vector<double>& values);

}  // namespace tw::plan
