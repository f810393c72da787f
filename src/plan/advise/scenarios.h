// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "market/lifetimes.h"
#include "plan/search/search.h"

/// How a plan fares when its machines are taken and replaced, and are not as fast as predicted: time and cost
/// over many draws of their lives and of the errors.
namespace tw::plan {

struct PlannedMachine {
  double samples_per_s = 0;
  double factor = 1;  ///< of the 80 % range of that speed, in which all machines of a kind err alike
  int kind = 0;
  double usd_per_h = 0;
  market::LifetimeLaw lifetimes;
  double wait_s = 0;    ///< from a request until it runs, and is paid
  double join_s = 0;    ///< then until it works
  bool notice = false;  ///< long enough to hand in what it did
  bool spot = false;    ///< shocks of its failure domain strike it
  int domain = 0;
};

struct PlannedRun {
  std::vector<PlannedMachine> machines;  ///< one for each peer
  double samples = 0;
  double samples_per_round = 0;
  Averaging round;          ///< with all of them; fewer are taken to need as long
  double round_factor = 1;  ///< of the 80 % range of its seconds
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

/// Scenario s of any plan has the same luck: machine m draws from the seed (s, m). 200 or more are
/// meaningful.
Outcomes play_scenarios(const PlannedRun& run, int scenarios = 256);

Spread spread_of(const std::vector<double>& values);

}  // namespace tw::plan
