// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"

namespace tw::train {

enum class ScheduleKind : std::uint8_t { constant, linear, cosine };

/// Learning rate by round; depends on nothing else (never on how many peers are alive).
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  double learning_rate = 1e-3;  ///< peak
  Round warmup_rounds = 0;      ///< linear from 0
  Round total_rounds = 0;       ///< where linear and cosine end; 0: the rounds of the run
  double final_share = 0;       ///< share of the peak that is left at the end, in [0, 1]
};

/// Rounds count from 1. The same bits on every machine (own cosine: libm differs between systems).
double learning_rate(const ScheduleOptions& options, Round round);

}  // namespace tw::train
