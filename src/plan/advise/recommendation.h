// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/advise/scenarios.h"
#include "plan/search/market_space.h"

/// Where to train, with how many of which machines.
namespace tw::plan {

/// A plan and what is expected of it.
struct Option {
  std::string name;  ///< "chosen", "runner-up", "one site", "on-demand only"
  std::vector<PeerGroup> peers;
  std::vector<int> counts;  ///< of the market's candidates
  double samples_per_s = 0;
  double hours = 0;  ///< with replacements of machines, on average
  double usd = 0;
  double usd_per_h = 0;
  double usd_per_million = 0;
  Averaging round;
  ReadRate reads;
  double losses = 0;  ///< machines taken, on average
  Spread hours_spread, usd_spread;
  double risky_hours = 0;  ///< that as many scenarios exceed as Job::risk allows
  double risky_usd = 0;
  std::string verdict;  ///< why it lost
};

struct Recommendation {
  std::string method{};  ///< of the literature that made the choice, and by what; empty: the search did
  Option chosen;
  std::vector<Option> others;  ///< runners-up and baselines
  /// Goal pareto: from the cheapest to the fastest, the chosen one among them; else the fastest at rising
  /// prices per hour.
  std::vector<Option> front;
  bool exact = false;
  double gap = 0;
  double checkpoint_s = 0;           ///< to write one
  double checkpoint_interval_s = 0;  ///< exact optimum
  double young_s = 0, daly_s = 0;
  /// By candidate of the chosen plan: those that stand in for it, best first (plan/advise/alternatives.h).
  std::map<std::size_t, std::vector<std::size_t>> alternatives{};
  std::vector<std::string> assumptions;
};

/// What is expected of given counts of the market's candidates.
Option evaluate(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                const std::string& name);

/// A plan of these machines, whoever chose them, with its checkpoints, alternatives and assumptions.
Recommendation described(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                         const std::string& name, std::int64_t now_unix_s);

/// Which limit the other one misses, or what it costs and takes more than the chosen one.
std::string verdict_on(const Job& job, const Option& other, const Option& chosen);

/// An error names the limit that cannot be met, and the nearest that can.
Result<Recommendation> recommend(const Job& job, const MarketSpace& market, std::int64_t now_unix_s);

}  // namespace tw::plan
