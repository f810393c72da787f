// SPDX-License-Identifier: Apache-2.0
#include "plan/search/all_lost.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

/// Spot machines in two failure domains, each taken once in 20 hours and away 1 % of the time; and one that
/// stays.
Space two_domains() {
  Space space;
  space.sites = 1;
  space.checkpoint_s = 36;
  const Choice spot{.lost_per_h = 0.05, .away = 0.01, .struck = 0.5};
  space.choices = {spot, spot, {}};
  space.choices[1].domain = 1;
  return space;
}

double all_lost_h(const Space& space, const std::vector<int>& counts) {
  return checkpoints_of(space, counts).cost.mtbf_s / 3600;
}

TEST(AllLost, a_single_machine_is_all_of_them) {
  const Checkpoints alone = checkpoints_of(two_domains(), {1, 0, 0});
  EXPECT_NEAR(alone.cost.mtbf_s, 20 * 3600, 1e-6);
  EXPECT_NEAR(alone.interval_s, best_interval_s(alone.cost), 1e-9);
  EXPECT_GT(alone.wall_per_work(), 1.03);
  EXPECT_LT(alone.wall_per_work(), 1.04) << "sqrt(2 * 36 / 72000) by Young";
}

TEST(AllLost, several_go_one_after_the_other_while_the_rest_is_waited_for) {
  EXPECT_NEAR(all_lost_h(two_domains(), {2, 0, 0}), 1 / (2 * 0.05 * 0.01), 1e-6);
  EXPECT_NEAR(all_lost_h(two_domains(), {1, 1, 0}), 1 / (2 * 0.05 * 0.01), 1e-6);
  EXPECT_LT(checkpoints_of(two_domains(), {2, 0, 0}).wall_per_work(), 1.005);
  EXPECT_EQ(checkpoints_of(two_domains(), {8, 0, 0}).interval_s, 0) << "less than once a century";
}

TEST(AllLost, never_where_a_machine_stays_or_a_notice_is_long_enough) {
  EXPECT_EQ(checkpoints_of(two_domains(), {1, 0, 1}).wall_per_work(), 1);
  EXPECT_EQ(checkpoints_of(two_domains(), {0, 0, 1}).interval_s, 0);
  Space warned = two_domains();
  warned.choices[0].lost_per_h = warned.choices[0].struck = 0;
  EXPECT_EQ(checkpoints_of(warned, {1, 0, 0}).wall_per_work(), 1);
}

TEST(AllLost, a_shock_takes_the_machines_of_one_failure_domain_together) {
  Space space = two_domains();
  space.shocks_per_h = 0.1;
  EXPECT_NEAR(all_lost_h(space, {3, 0, 0}), 1 / (0.1 * 0.125 + 3 * 0.05 * 1e-4), 1e-6);
  EXPECT_EQ(all_lost_h(space, {2, 1, 0}), all_lost_h(two_domains(), {2, 1, 0})) << "two domains";
  EXPECT_EQ(all_lost_h(space, {1, 0, 0}), all_lost_h(two_domains(), {1, 0, 0})) << "counted in its own rate";
}

}  // namespace
}  // namespace tw::plan
