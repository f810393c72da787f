// SPDX-License-Identifier: Apache-2.0
#include "plan/model/spot_hazards.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/model/expected_cost.h"

namespace tw::plan {
namespace {

SpotRates constant(double per_h) {
  SpotRates rates{};
  rates.fill(per_h);
  return rates;
}

TEST(SpotHazards, bins_begin_at_0_16_40_and_100_minutes_and_4_and_13_hours) {
  EXPECT_EQ(spot_age_bin(0), 0);
  EXPECT_EQ(spot_age_bin(15.9 / 60), 0);
  EXPECT_EQ(spot_age_bin(16.0 / 60), 1);
  EXPECT_EQ(spot_age_bin(1), 2);
  EXPECT_EQ(spot_age_bin(4), 4);
  EXPECT_EQ(spot_age_bin(500), 5);
}

TEST(SpotHazards, with_a_constant_rate_times_are_exponential) {
  for (const double age_h : {0.0, 0.5, 20.0}) {
    EXPECT_NEAR(mean_time_left_h(constant(0.5), age_h, 24), 2 * (1 - std::exp(-12)), 1e-9) << age_h;
    EXPECT_NEAR(time_until_ended_h(constant(0.5), age_h, 0.5), std::log(2) / 0.5, 1e-9) << age_h;
  }
  EXPECT_EQ(mean_time_left_h(constant(0), 3, 24), 24);
}

TEST(SpotHazards, an_old_state_lasts_longer_where_its_rates_fall) {
  const SpotRates falling{2, 1, 0.5, 0.2, 0.1, 0.05};
  EXPECT_LT(mean_time_left_h(falling, 0, 24), mean_time_left_h(falling, 1, 24));
  EXPECT_LT(mean_time_left_h(falling, 1, 24), mean_time_left_h(falling, 14, 24));
}

TEST(SpotHazards, the_prior_counts_as_4_hours) {
  SpotSpells seen;
  seen.up[2] = {.hours = 4, .ends = 12};
  SpotHazards prior = guessed_hazards();
  EXPECT_NEAR(hazards_of(seen, prior).lost_per_h[2], (3 + prior.lost_per_h[2]) / 2, 1e-9);
  EXPECT_NEAR(hazards_of(seen, prior).lost_per_h[3], prior.lost_per_h[3], 1e-9);
}

TEST(SpotHazards, a_life_counts_in_each_bin_that_it_passed) {
  SpotSpells spells;
  spells.add_life(1, true);
  spells.add_life(0.1, false);
  EXPECT_NEAR(spells.up[0].hours, 16.0 / 60 + 0.1, 1e-9);
  EXPECT_NEAR(spells.up[2].hours, 1 - 40.0 / 60, 1e-9);
  EXPECT_EQ(spells.up[2].ends, 1);
  EXPECT_EQ(spells.up[0].ends, 0);
}

TEST(SpotHazards, a_campaign_is_no_prior_for_its_own_traces) {
  const SpotHazards all = prior_without("");
  const SpotHazards others = prior_without("cbl-availability-1n-20230215-us-east-1a-v100x1");
  EXPECT_NE(all.lost_per_h[0], others.lost_per_h[0]);
  EXPECT_GT(all.lost_per_h[0], 10 * all.lost_per_h[5]);
  const auto malformed = read_spot_campaigns("c.csv", "campaign,state,from_min,hours,ends\na,maybe,0,1,1\n");
  ASSERT_FALSE(malformed.ok());
  EXPECT_NE(malformed.error().message.find("c.csv:2: state maybe: expected up or down"), std::string::npos)
      << malformed.error().message;
}

/// Against a sum by hand: one step of work that a spot machine, still to be started, does in time.
TEST(ExpectedCost, is_that_of_the_cheapest_choice) {
  SpotOutlook outlook{
      .hazards = {constant(0), constant(0)}, .elsewhere = {}, .spot_usd_h = 1, .on_demand_usd_h = 3};
  const ExpectedCost never_lost(outlook, {.time_h = 10, .work_h = 5, .change_over_h = 0.25});
  const SpotSight up{.up = true, .age_h = 0};
  const auto from_idle = never_lost.usd(10, 5, up, Mode::idle);
  EXPECT_NEAR(from_idle[1], 5.25, 1e-3);
  EXPECT_NEAR(from_idle[2] - from_idle[1], 0.75, 1e-3);  // a change-over on-demand, and then the same
  const auto without = never_lost.usd(10, 5, {.up = false, .age_h = 0}, Mode::idle);
  EXPECT_NEAR(without[2], 5.25 * 3, 1e-3);
  EXPECT_GT(without[1], ExpectedCost::kImpossible);
  EXPECT_GT(never_lost.usd(5, 5, {.up = false, .age_h = 0}, Mode::idle)[0], ExpectedCost::kImpossible);
}

}  // namespace
}  // namespace tw::plan
