// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/search/market_space.h"
#include "plan/search/scenarios.h"

/// Searches for the machines of a job within limits that hold on average, and in as many scenarios as the
/// job's risk requires. Each plan is judged by itself, so that more time or a wider market never costs more.
namespace tw::plan {

/// 0: no limit.
struct Limits {
  double hours = 0, usd = 0;              ///< on average
  double usd_per_h = 0;                   ///< of machines, traffic and data
  double risky_hours = 0, risky_usd = 0;  ///< exceeded by no more scenarios than Job::risk allows
};

Limits limits_of(const Job& job);

/// usd_per_h: of the machines alone. safe_hours, safe_usd: what a limit must be at least.
enum class Measure { hours, usd, usd_per_h, safe_hours, safe_usd };

/// That of the job's goal.
Measure measure_of(const Job& job);

struct Expected {
  double samples_per_s = 0;
  double hours = 0;
  double usd = 0;
  double usd_per_h = 0;
  double slow_hours = 0, slow_usd = 0;  ///< with as bad luck as Job::risk says
};

inline constexpr Effort kQuick{.steps = 60'000, .exact = false};  ///< for mere comparisons

class LimitedSearch {
 public:
  /// The job and the market outlive it.
  LimitedSearch(const Job& job, const MarketSpace& market, SearchTold told = {});

  const Job& job() const { return job_; }

  const MarketSpace& market() const { return market_; }

  /// The market's, with what the job's risk asks for.
  const Space& space() const { return space_; }

  Expected expected_of(const Score& score) const;

  /// The least of a measure.
  SearchResult least(Measure measure, const Limits& limits, const Space& space, Effort effort) const;

  /// Likewise. Where plans are equal in it, cost decides among the fastest, time among the cheapest.
  SearchResult best_by(Measure measure, const Limits& limits, const Space& space, Effort effort) const;

  /// Averaging of the plan, and what its scenarios take.
  Averaging averaging_of(const std::vector<int>& counts) const { return planned(counts).round; }

  Outcomes outcomes_of(const std::vector<int>& counts) const;

  /// Hours and USD that limits must be at least for this plan.
  struct Needs {
    double hours = 0, usd = 0;
  };

  Needs needs_of(const std::vector<int>& counts) const;

 private:
  PlannedRun planned(const std::vector<int>& counts) const;
  Needs risky_of(const std::vector<int>& counts) const;

  const Job& job_;
  const MarketSpace& market_;
  SearchTold told_;
  Space space_;
  mutable std::map<std::vector<int>, Needs> risky_;  ///< by counts
};

}  // namespace tw::plan
