// SPDX-License-Identifier: Apache-2.0
#include "plan/methods/deepvm.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

DeepVmMarket small_market() {
  DeepVmMarket market;
  market.workers = {{.name = "slow",
                     .quota_class = "G",
                     .network_gbps = 10,
                     .flops_score = 100,
                     .on_demand_usd_h = 1,
                     .spot_usd_h = 0.25,
                     .speed = {.a = 0.2, .b = 8, .c = 8},
                     .measured_s = {{1, 100}, {2, 60}, {4, 40}}},
                    {.name = "quick",
                     .quota_class = "G",
                     .network_gbps = 10,
                     .flops_score = 500,
                     .on_demand_usd_h = 4,
                     .spot_usd_h = 1,
                     .speed = {.a = 0.2, .b = 8, .c = 8},
                     .measured_s = {{1, 30}, {2, 20}}}};
  market.anchors = {
      {.name = "narrow", .quota_class = "C", .network_gbps = 1, .memory_gib = 8, .on_demand_usd_h = 0.1},
      {.name = "small", .quota_class = "C", .network_gbps = 10, .memory_gib = 0.5, .on_demand_usd_h = 0.1},
      {.name = "good", .quota_class = "C", .network_gbps = 10, .memory_gib = 8, .on_demand_usd_h = 0.2}};
  market.saturation = {{5, 4}};
  market.most = 16;
  return market;
}

TEST(DeepVm, an_anchor_has_room_for_the_checkpoint_and_bandwidth_for_its_workers) {
  const auto ranked = recommend(small_market(), {.usd_per_h = 1}, DeepVmPolicy::with_scaling);
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked[0].worker, "slow");
  EXPECT_EQ(ranked[0].anchor, "good");
  EXPECT_EQ(ranked[0].workers, 3);
  EXPECT_NEAR(ranked[0].usd_per_h, 0.95, 1e-12);
}

TEST(DeepVm, nothing_is_recommended_below_the_cheapest_pair) {
  for (DeepVmPolicy policy : {DeepVmPolicy::cost_first, DeepVmPolicy::performance_first,
                              DeepVmPolicy::without_scaling, DeepVmPolicy::with_scaling})
    EXPECT_TRUE(recommend(small_market(), {.usd_per_h = 0.3}, policy).empty());
}

TEST(DeepVm, quotas_bound_the_counts) {
  DeepVmMarket market = small_market();
  market.quotas = {{"G", {.on_demand = 8, .spot = 12}}, {"C", {.on_demand = 64, .spot = 64}}};
  const auto ranked = recommend(market, {.usd_per_h = 100}, DeepVmPolicy::cost_first);
  ASSERT_EQ(ranked.size(), 1U);
  EXPECT_EQ(ranked[0].workers, 3);
}

TEST(DeepVm, beyond_its_bend_the_speed_falls_behind_the_tangent) {
  const SigmoidSpeed speed{.a = 0.2, .b = 8, .c = 8};
  EXPECT_EQ(speed.scaling_factor(8), 1);
  EXPECT_GT(speed.scaling_factor(9), speed.scaling_factor(12));
  EXPECT_LT(speed.scaling_factor(9), 1);
}

TEST(DeepVm, the_cheapest_training_and_the_fastest_are_two_clusters) {
  const DeepVmMarket market = small_market();
  const auto cheapest = least_usd(market, {.usd_per_h = 5});
  EXPECT_EQ(cheapest->cluster.worker, "slow");
  EXPECT_EQ(cheapest->cluster.workers, 1);
  EXPECT_NEAR(cheapest->usd, 100 * 0.25 / 3600, 1e-12);
  const auto quickest = fastest(market, {.usd_per_h = 5});
  EXPECT_EQ(quickest->cluster.worker, "quick");
  EXPECT_EQ(quickest->cluster.workers, 2);
  EXPECT_EQ(quickest->cluster.anchor, "good");
}

TEST(DeepVm, between_measured_counts_speed_is_linear) {
  const auto quickest = fastest(small_market(), {.usd_per_h = 0.95});
  EXPECT_EQ(quickest->cluster.workers, 3);
  EXPECT_NEAR(quickest->training_s, 48, 1e-9);  // halfway between 1/60 and 1/40
}

}  // namespace
}  // namespace tw::plan
