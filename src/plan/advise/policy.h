// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "plan/model/availability.h"

/// Spot machines while they last, on-demand machines where a deadline asks for them ("Can't Be Late", NSDI
/// 2024), played over a trace in steps of equal length (ticks).
namespace tw::plan {

/// Work that any of the machines can do in parallel, such as samples to train.
struct DeadlineJob {
  double work_s = 0;  ///< of all machines at work
  double deadline_s = 0;
  double change_over_s = 0;  ///< from the decision for a machine to its first work; lost work included
  int machines = 1;
  double spot_usd_h = 0;
  double on_demand_usd_h = 0;
};

enum class Policy {
  on_demand,  ///< from the beginning to the end
  greedy,     ///< spot or nothing, until only on-demand keeps the deadline
  uniform,    ///< on-demand as well while behind a schedule of uniform progress, as published
  forecast,   ///< on-demand as well while the spot machines seen so far would not do the rest
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

/// The grid of a replay: whole ticks of the change-over time, of at most 5 minutes.
struct Ticks {
  double tick_s = 0;
  int deadline = 0;  ///< ticks that fit before it
  int change_over = 0;
  int work = 0;  ///< machine ticks
};

Ticks ticks_of(const DeadlineJob& job);

/// On-demand machines from the first moment on keep the deadline.
bool feasible(const DeadlineJob& job);

/// The job begins `from_s` after the beginning of the trace. A policy knows the present and the past alone.
/// No policy is late on a feasible job.
Replay replay(const DeadlineJob& job, const AvailabilityTrace& trace, double from_s, Policy policy);

/// What nobody who decides on the same ticks can do for less: with one machine the optimum of somebody who
/// knew the whole trace (dynamic programming), with more a bound that change-overs are free of charge in.
double least_usd_in_hindsight(const DeadlineJob& job, const AvailabilityTrace& trace, double from_s);

}  // namespace tw::plan
