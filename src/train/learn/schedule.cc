// SPDX-License-Identifier: Apache-2.0
#include "train/learn/schedule.h"

#include <algorithm>
#include <numbers>

namespace tw::train {
namespace {

/// cos(pi x) for x in [0, 1], by the Taylor series of sin at pi (0.5 - x), which is within [-pi/2, pi/2]. The
/// first term left out is below 2^-60.
double cosine_of_half_turns(double x) {
  const double angle = std::numbers::pi * (0.5 - x);
  const double square = angle * angle;
  double series = 1;
  for (int k = 21; k >= 3; k -= 2) series = 1 - square / (k * (k - 1)) * series;
  return angle * series;
}

/// Share of the peak that is left after `progress` in [0, 1] of the way down.
double share_left(const ScheduleOptions& options, double progress) {
  switch (options.kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
      return 1 - (1 - options.final_share) * progress;
    case ScheduleKind::cosine:
      return options.final_share + (1 - options.final_share) * 0.5 * (1 + cosine_of_half_turns(progress));
  }
  return 1;
}

}  // namespace

double learning_rate(const ScheduleOptions& options, Round round) {
  if (round < options.warmup_rounds) {
    return options.learning_rate * (static_cast<double>(round) / static_cast<double>(options.warmup_rounds));
  }
  const Round way_down =
      options.total_rounds > options.warmup_rounds ? options.total_rounds - options.warmup_rounds : 0;
  if (way_down == 0) return options.learning_rate;
  const double progress = static_cast<double>(round - options.warmup_rounds) / static_cast<double>(way_down);
  return options.learning_rate * share_left(options, std::min(progress, 1.0));
}

}  // namespace tw::train
