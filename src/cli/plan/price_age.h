// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "plan/advise/recommendation.h"

namespace tw::cli {

/// One line with the age of the oldest price among the chosen machines, and the command that fetches today's.
/// Empty when no price of them is old (is_old); an undated price, such as that of an owned host, is never
/// old.
std::string price_age_line(const plan::MarketSpace& market, const plan::Recommendation& plan,
                           std::int64_t now_unix_s);

}  // namespace tw::cli
