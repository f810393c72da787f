// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "plan/model/availability.h"

/// Spot machines while they last, on-demand machines when a deadline requires them ("Can't Be Late", NSDI
/// 2024), replayed on a trace in steps of equal length (ticks).
namespace tw::plan {

/// Work that the machines can do in parallel, such as samples to train.
struct DeadlineJob {
  double work_s = 0;  ///< with all machines at work
  double deadline_s = 0;
  double change_over_s = 0;  ///< from the decision for a machine to its first work, including work to redo
  int machines = 1;
  double spot_usd_h = 0;
  double on_demand_usd_h = 0;
};

enum class Policy {
  on_demand,  ///< only on-demand machines
  greedy,     ///< spot machines or none, until only on-demand meets the deadline
  uniform,    ///< also on-demand while behind a schedule of uniform progress, as published
  forecast,   ///< also on-demand while spot machines, as available so far, would not do the rest
};

std::string_view to_string(Policy policy);

struct Replay {
  double usd = 0;
  double finished_s = 0;
  double spot_h = 0;  ///< machine hours, start-up included
  double on_demand_h = 0;
  int interruptions = 0;  ///< spot machines that were taken
  bool late = false;
};

/// Time grid of a replay: the change-over time is a whole number of ticks of at most 5 minutes.
struct Ticks {
  double tick_s = 0;
  int deadline = 0;  ///< ticks before the deadline
  int change_over = 0;
  int work = 0;  ///< machine ticks
};

Ticks ticks_of(const DeadlineJob& job);

/// True if on-demand machines from the first moment on meet the deadline.
bool feasible(const DeadlineJob& job);

/// Replays a job that begins `from_s` after the beginning of the trace. A policy knows only the present and
/// the past. No policy is late on a feasible job.
Replay replay(const DeadlineJob& job, const AvailabilityTrace& trace, double from_s, Policy policy);

/// Lower bound of the cost of any decisions on the same ticks. With one machine it is the optimum for a known
/// trace (dynamic programming); with more, a bound that ignores the cost of change-overs.
double least_usd_in_hindsight(const DeadlineJob& job, const AvailabilityTrace& trace, double from_s);

}  // namespace tw::plan
