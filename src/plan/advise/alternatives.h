// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "plan/input/job.h"
#include "plan/search/market_space.h"

namespace tw::plan {

inline constexpr std::size_t kMostAlternatives = 3;

/// By candidate of the plan: candidates that may replace a machine that is not available, best first. The
/// best ones make the whole plan worth most by the job's goal, averaging between sites included. Plans that
/// miss the deadline or a budget come last, before them those with a machine of less than half the speed. One
/// of less than a quarter is no alternative. Owned hosts are not replaced and replace nothing; a machine that
/// stays is replaced only by one that stays.
std::map<std::size_t, std::vector<std::size_t>> alternatives_of(const Job& job, const MarketSpace& market,
                                                                const std::vector<int>& counts);

}  // namespace tw::plan
