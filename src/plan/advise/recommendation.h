// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/advise/limited_search.h"
#include "plan/advise/mode_choice.h"
#include "plan/search/market_space.h"

/// Where to train, on which machines and how many.
namespace tw::plan {

inline constexpr int kFrontPoints = 10;  ///< of Recommendation::front, at most

/// A plan and its expected outcome.
struct Option {
  std::string name;  ///< "chosen", "without T4", "half as many", "one site", "on-demand only"
  std::vector<PeerGroup> peers;
  std::string bought;       ///< "spot", "15 spot, 1 on-demand"
  bool estimated = false;   ///< the speed of some machine is no measurement
  std::vector<int> counts;  ///< of the market's candidates
  double samples_per_s = 0;
  double hours = 0;  ///< with replacements of machines, on average
  double usd = 0;
  double usd_per_h = 0;
  double usd_per_million = 0;  ///< of samples, all costs
  Averaging round;
  ReadRate reads;
  double losses = 0;  ///< machines taken, on average
  Spread hours_spread, usd_spread;
  double risky_hours = 0;  ///< exceeded by the share of scenarios that Job::risk allows
  double risky_usd = 0;
  double slow_hours = 0, slow_usd = 0;    ///< at the mean speed with as bad luck as Job::risk says
  double late_share = 0, dear_share = 0;  ///< of the scenarios: over the deadline, over the budget
  int domains = 1;                        ///< failure domains
  std::string verdict;                    ///< why it was not chosen
};

struct Recommendation {
  std::string method{};  ///< published method that made the choice, and its criterion; empty: the search
  std::string misses{};  ///< limit that the choice of the method misses (missed_limit)
  Option chosen;
  std::vector<Option> others;  ///< runners-up and baselines
  /// Goal pareto: from the cheapest to the fastest, the chosen one included; otherwise the fastest plans at
  /// rising prices per hour.
  std::vector<Option> front;
  bool exact = false;
  double gap = 0;
  double checkpoint_s = 0;           ///< time to write one
  double checkpoint_interval_s = 0;  ///< exact optimum; 0: no loss of all peers counts
  double all_lost_h = 0;             ///< between two losses of all peers at once, on average
  double checkpoint_share = 0;       ///< of the time, for checkpoints and work done again
  double young_s = 0, daly_s = 0;
  /// By candidate of the chosen plan: its replacements, best first (plan/advise/alternatives.h).
  std::map<std::size_t, std::vector<std::size_t>> alternatives{};
  std::vector<std::string> assumptions;
  /// Why the plan has its mode (plan/advise/mode_plan.h), and what was compared on its machines.
  std::vector<std::string> mode_reasons{};
  std::vector<ModePoint> modes{};
};

/// Expected outcome of given counts of the market's candidates.
Option evaluate(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                const std::string& name);

/// A plan of these machines, from any planner, with its checkpoints, alternatives and assumptions.
Recommendation described(const Job& job, const MarketSpace& market, const std::vector<int>& counts,
                         const std::string& name, std::int64_t now_unix_s);

/// "no machine is taken", "1 run in 256 loses a machine", "2.5 machines are taken in the mean".
std::string losses_text(double losses);

/// "misses the deadline by 2.3 h", "exceeds the budget in 14 % of the scenarios"; empty: it keeps all limits.
std::string missed_limit(const Job& job, const Option& option);

/// The limit that the other option misses, or its extra cost and time over the chosen one.
std::string verdict_on(const Job& job, const Option& other, const Option& chosen);

/// The least USD of a plan within the limits, or its least hours where the goal is not cheapest; infinite
/// where there is no plan. By a quick search.
double least_of_goal(const Job& job, const MarketSpace& market);

/// The plan of least_of_goal; nothing where there is none.
std::optional<Option> quick_plan(const Job& job, const MarketSpace& market);

/// An error names the limit that cannot be met, and the nearest that can. told: of each of its searches.
/// Where the front has fewer points than Job::front_point, its last one is chosen.
Result<Recommendation> recommend(const Job& job, const MarketSpace& market, std::int64_t now_unix_s,
                                 const SearchTold& told = {});

}  // namespace tw::plan
