// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/spot_market.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tw::plan {
namespace {

constexpr double kTick_h = 0.1;

SpotMarket market_of(int zones) {
  return {1, kTick_h, std::vector<SpotHazards>(static_cast<std::size_t>(zones), guessed_hazards())};
}

TEST(SpotMarket, a_state_is_as_old_as_its_last_change) {
  SpotMarket market = market_of(1);
  for (const int available : {0, 1, 1, 1}) market.see({available});
  EXPECT_TRUE(market.zone(0, 0).up);
  EXPECT_NEAR(market.zone(0, 0).age_h, 2 * kTick_h, 1e-9);
  EXPECT_FALSE(market.zone(0, 1).up) << "another one beside it";
}

/// The second zone never loses its machine, the first one each hour: a machine in the longest lasting one is
/// not lost.
TEST(SpotMarket, the_outlook_is_that_of_the_zone_which_lasts_longest) {
  SpotMarket market = market_of(2);
  for (int tick = 0; tick < 500; ++tick) market.see({tick % 10 == 9 ? 0 : 1, tick >= 20 ? 1 : 0});
  EXPECT_GT(market.hazards(0).lost_per_h[2], 0.5);
  EXPECT_LT(market.outlook().lost_per_h[5], 0.05);
  const auto elsewhere = market.elsewhere();
  EXPECT_GT(std::accumulate(elsewhere.begin(), elsewhere.end(), 0.0), 0);
  EXPECT_LE(std::accumulate(elsewhere.begin(), elsewhere.end(), 0.0), 1);
}

TEST(SpotMarket, a_single_zone_has_no_other) {
  SpotMarket market = market_of(1);
  for (const int available : {1, 0, 1, 0}) market.see({available});
  const auto elsewhere = market.elsewhere();
  EXPECT_EQ(std::accumulate(elsewhere.begin(), elsewhere.end(), 0.0), 0);
}

}  // namespace
}  // namespace tw::plan
