// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "plan/input/job.h"
#include "plan/search/market_space.h"

namespace tw::plan {

inline constexpr std::size_t kMostAlternatives = 3;

/// Candidates that may stand in for a machine of the plan which cannot be had, by candidate of the plan:
/// those with which the whole plan is worth most by the job's goal, averaging between sites included. Plans
/// that miss the deadline or a budget come last. Owned hosts have none and are none, and a machine that stays
/// is replaced by one that stays.
std::map<std::size_t, std::vector<std::size_t>> alternatives_of(const Job& job, const MarketSpace& market,
                                                                const std::vector<int>& counts);

}  // namespace tw::plan
