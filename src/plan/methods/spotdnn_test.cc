// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/spotdnn.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

const SpotDnnModel kModel{.gradient_mb = 10,
                          .worker_mb_s = 100,
                          .server_mb_s = 1000,
                          .pcie_mb_s = 10000,
                          .alpha1 = 0.8,
                          .beta1 = 1.9,
                          .gamma1 = 800,
                          .gamma2 = -0.2,
                          .gamma3 = 2500,
                          .gamma5 = 0.5};

std::vector<SpotDnnInstance> two_types() {
  return {
      {.name = "big", .gpus = 1, .quota = 2, .usd_per_h = 1, .samples_per_s = 2000, .batch_per_gpu = 1024},
      {.name = "small",
       .gpus = 1,
       .quota = 4,
       .usd_per_h = 0.4,
       .samples_per_s = 700,
       .batch_per_gpu = 1024}};
}

TEST(SpotDnn, a_worker_alone_is_as_fast_as_measured_but_for_its_bus) {
  const SpotDnnPlan plan = predict(two_types(), kModel, {1, 0}, 0.9);
  EXPECT_NEAR(plan.samples_per_s, 1024 / (1024.0 / 2000 + 2 * 10.0 / 10000), 1e-9);
  EXPECT_NEAR(plan.usd, plan.time_s / 3600, 1e-6);
}

TEST(SpotDnn, many_workers_share_the_server) {
  std::vector<SpotDnnInstance> instances = two_types();
  const double alone = predict(instances, kModel, {1, 0}, 0.9).samples_per_s;
  EXPECT_NEAR(predict(instances, kModel, {10, 0}, 0.9).samples_per_s, 10 * alone, 1e-6);
  EXPECT_LT(predict(instances, kModel, {40, 0}, 0.9).samples_per_s, 38 * alone);
}

TEST(SpotDnn, all_mixes_hold_a_plan_at_least_as_cheap_as_neighbours_do) {
  for (double time_s : {2000.0, 3000.0, 5000.0, 9000.0}) {
    const auto published = published_plan(two_types(), kModel, {.loss = 0.9, .time_s = time_s});
    const auto cheapest = cheapest_plan(two_types(), kModel, {.loss = 0.9, .time_s = time_s});
    ASSERT_EQ(published.has_value(), cheapest.has_value()) << time_s;
    if (published) {
      EXPECT_LE(cheapest->usd, published->usd) << time_s;
    }
  }
}

TEST(SpotDnn, no_plan_is_in_time_for_the_impossible) {
  EXPECT_FALSE(cheapest_plan(two_types(), kModel, {.loss = 0.9, .time_s = 1}).has_value());
}

}  // namespace
}  // namespace tw::plan
