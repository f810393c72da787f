// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/advise/policy.h"

namespace tw::plan {

struct ReplayTask {
  DeadlineJob job;     ///< machines 0: the most that a trace has
  double every_s = 0;  ///< the job begins at this interval along a trace
  std::string only;    ///< only this trace; empty: all
};

/// Means over all beginnings, in USD.
struct ReplayRow {
  std::string trace;
  int beginnings = 0;
  int machines = 0;
  std::array<double, 4> usd{};  ///< of the policies, in the order of kPolicies
  double least_usd = 0;         ///< in hindsight
  int late = 0;                 ///< late runs of any policy
};

inline constexpr std::array kPolicies{Policy::on_demand, Policy::greedy, Policy::uniform, Policy::forecast};

struct ReplayTable {
  std::vector<ReplayRow> rows;
  std::vector<std::string> too_short;  ///< traces that end before the deadline
};

/// An error when the deadline cannot be met even on-demand, or no trace fits.
Result<ReplayTable> replay_table(const ReplayTask& task, const std::vector<AvailabilityTrace>& traces);

std::string to_text(const ReplayTable& table);
std::string to_json(const ReplayTable& table);

}  // namespace tw::plan
