// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/advise/spot_replay.h"

namespace tw::plan {

/// Each of them asks the policy at each tick.
inline constexpr int kMostReplayMachines = 256;

struct ReplayTask {
  DeadlineJob job;            ///< machines 0: the most that a trace has, with a market 1
  double every_s = 0;         ///< the job begins at this interval along a trace
  std::string only;           ///< only this trace; empty: all
  std::string market;         ///< traces whose names begin so are the zones of one market; empty: each alone
  SpotPolicy* own = nullptr;  ///< the user's, beside ours
};

/// Cost over the optimum in hindsight, in per cent, over the starts.
struct OverOptimum {
  double mean = 0, median = 0, p90 = 0, worst = 0;
};

/// One policy; means over the starts.
struct PolicyResult {
  std::string name;
  double usd = 0;
  double makespan_h = 0;
  double spot_h = 0;
  double interruptions = 0;
  double moves = 0;
  int late = 0;  ///< starts
  OverOptimum over;
};

struct ReplayRow {
  std::string trace;
  int zones = 1;
  int starts = 0;
  int machines = 0;
  double least_usd = 0;  ///< in hindsight
  std::vector<PolicyResult> policies;
};

struct ReplayTable {
  std::vector<ReplayRow> rows;
  /// Over all traces: means count each trace once, the quantiles of `over` are those of all starts.
  std::vector<PolicyResult> policies;
  std::vector<std::string> too_short;  ///< traces that end before the deadline
};

/// Gets the share of the replays that are done, 0 to 1, at each start, once the user's own policy has played
/// it. False: no more of them.
using OnShare = std::function<bool(double share)>;

/// An error when the deadline cannot be met even on-demand, no trace fits, on_share stops it, or a trace has
/// more machines than kMostReplayMachines and the task does not say how many.
Result<ReplayTable> replay_table(const ReplayTask& task, const std::vector<AvailabilityTrace>& traces,
                                 const OnShare& on_share = {});

std::string to_text(const ReplayTable& table);
std::string to_json(const ReplayTable& table);

/// Cost over the optimum of each policy: median, 90 % and the worst start.
std::string to_svg(const ReplayTable& table);

}  // namespace tw::plan
