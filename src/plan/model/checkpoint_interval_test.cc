// SPDX-License-Identifier: Apache-2.0
#include "plan/model/checkpoint_interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/prng.h"

namespace tw::plan {
namespace {

TEST(CheckpointInterval, no_other_interval_costs_less) {
  Prng random(7);
  for (int i = 0; i < 500; ++i) {
    const CheckpointCost cost{.checkpoint_s = std::pow(10, -3 + 6 * random.uniform()),
                              .mtbf_s = std::pow(10, 2 + 5 * random.uniform()),
                              .restart_s = 100};
    const double best_s = best_interval_s(cost);
    const double least = expected_wall_per_work(cost, best_s);
    for (double other : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
      EXPECT_LE(least, expected_wall_per_work(cost, other * best_s) * (1 + 1e-12))
          << cost.checkpoint_s << " " << cost.mtbf_s << " x " << other;
    EXPECT_LE(least, expected_wall_per_work(cost, young_interval_s(cost)) * (1 + 1e-12));
    EXPECT_LE(least, expected_wall_per_work(cost, daly_interval_s(cost)) * (1 + 1e-12));
  }
}

TEST(CheckpointInterval, is_near_young_when_checkpoints_are_cheap) {
  const CheckpointCost cost{.checkpoint_s = 1e-6, .mtbf_s = 86400, .restart_s = 60};
  EXPECT_NEAR(best_interval_s(cost) / young_interval_s(cost), 1, 1e-5);
}

TEST(CheckpointInterval, is_at_most_the_mean_time_between_losses) {
  const CheckpointCost cost{.checkpoint_s = 1e5, .mtbf_s = 100, .restart_s = 0};
  EXPECT_EQ(best_interval_s(cost), 100);
  EXPECT_EQ(daly_interval_s(cost), 100);
}

// sqrt(2 C M) (1 + sqrt(C / 2 M) / 3 + C / 18 M) - C, by hand.
TEST(CheckpointInterval, young_and_daly_of_100_s_and_5000_s) {
  const CheckpointCost cost{.checkpoint_s = 100, .mtbf_s = 5000};
  EXPECT_NEAR(young_interval_s(cost), 1000, 1e-9);
  EXPECT_NEAR(daly_interval_s(cost), 1000 * (1 + 0.1 / 3 + 0.01 / 9) - 100, 1e-9);
}

TEST(CheckpointInterval, of_remote_storage_grows_with_the_size) {
  EXPECT_NEAR(remote_checkpoint_s(100), 5.752, 1e-3);
  EXPECT_NEAR(remote_checkpoint_s(200) - remote_checkpoint_s(100), 2.0006, 1e-9);
}

}  // namespace
}  // namespace tw::plan
