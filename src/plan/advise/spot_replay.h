// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/advise/spot_policy.h"
#include "plan/model/availability.h"

/// A policy on recorded spot markets, in steps of equal length (ticks).
namespace tw::plan {

/// Work that the machines can do in parallel, such as samples to train.
struct DeadlineJob {
  double work_s = 0;  ///< with all machines at work
  double deadline_s = 0;
  double change_over_s = 0;  ///< from the decision for a machine to its first work, including work to redo
  int machines = 1;
  double spot_usd_h = 0;  ///< where a trace has no price of its own
  double on_demand_usd_h = 0;
  /// For a spot machine in another zone than its own last one: egress of its state. The others are not asked.
  double move_usd = 0;
};

/// A machine from its start to its end, in seconds since the job's beginning.
struct Stay {
  int machine = 0;
  Mode mode = Mode::spot;  ///< or on_demand
  double from_s = 0;
  double to_s = 0;
  double usd = 0;
  bool taken = false;  ///< by the market; false: given up by the policy, or the job was done

  bool operator==(const Stay&) const = default;
};

struct Replay {
  double usd = 0;
  double finished_s = 0;
  double spot_h = 0;  ///< machine hours, start-up included
  double on_demand_h = 0;
  int interruptions = 0;  ///< spot machines that were taken
  int moves = 0;          ///< starts of spot machines
  bool late = false;
  std::vector<Stay> stays;  ///< by their end
};

/// Time grid of a replay: the change-over time is a whole number of ticks of 1 to 5 minutes.
struct Ticks {
  double tick_s = 0;
  int deadline = 0;  ///< ticks before the deadline
  int change_over = 0;
  int work = 0;  ///< machine ticks
};

Ticks ticks_of(const DeadlineJob& job);

/// The time that all zones cover.
struct CoveredTime {
  explicit CoveredTime(const std::vector<AvailabilityTrace>& zones);

  double begin_s = 0;
  double length_s = 0;  ///< 0: none
};

/// Zones by tick, from `from_s` after the beginning of their common time on.
struct SampledZones {
  SampledZones(const std::vector<AvailabilityTrace>& zones, double from_s, double tick_s, int ticks,
               double spot_usd_h);

  std::vector<std::vector<int>> available;      ///< [tick][zone]
  std::vector<std::vector<double>> spot_usd_h;  ///< [tick][zone]
};

/// True if on-demand machines from the first moment on meet the deadline.
bool feasible(const DeadlineJob& job);

/// Replays a job that begins `from_s` after the beginning of the traces, each of which is a zone. A policy
/// knows the present and the past, from before the job's beginning too, and of other traces what
/// prior_without() has. No policy is late on a feasible job.
Replay replay(const DeadlineJob& job, const std::vector<AvailabilityTrace>& zones, double from_s,
              SpotPolicy& policy);

/// Lower bound of the cost of any decisions on the same ticks. With one machine it is the optimum for known
/// traces (dynamic programming); with more, a bound that ignores the cost of change-overs and moves.
double least_usd_in_hindsight(const DeadlineJob& job, const std::vector<AvailabilityTrace>& zones,
                              double from_s);

}  // namespace tw::plan
