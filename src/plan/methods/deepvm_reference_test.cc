// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/methods/test_studies.h"

namespace tw::plan {
namespace {

using testing_tables::deepvm_market;
using testing_tables::require_table;

DeepVmPolicy policy_named(const std::string& name) {
  if (name == "cost_first") return DeepVmPolicy::cost_first;
  if (name == "performance_first") return DeepVmPolicy::performance_first;
  return name == "deepvm" ? DeepVmPolicy::with_scaling : DeepVmPolicy::without_scaling;
}

void expect_cluster(CsvRow row, const DeepVmCluster& cluster) {
  EXPECT_EQ(cluster.worker, row.text("worker"));
  EXPECT_EQ(cluster.workers, row.count("n_workers_total"));
  EXPECT_EQ(cluster.anchor, row.text("anchor"));
  EXPECT_EQ(cluster.anchors, row.number_or("n_anchors", 0));
  EXPECT_NEAR(cluster.usd_per_h, row.number("hourly_price_usd"), 1e-6);
  EXPECT_NEAR(cluster.scaling_factor, row.number("K_factor"), 1e-8);
  EXPECT_NEAR(cluster.objective / row.number("Z_score"), 1, 1e-8);
  EXPECT_NEAR(cluster.score / row.number("flops_n_K"), 1, 1e-8);
}

TEST(DeepVmReference, every_published_recommendation_follows_from_the_inputs) {
  const DeepVmMarket real = deepvm_market("aws_real");
  const DeepVmMarket synthetic = deepvm_market("synthetic");
  int rows = 0;
  for (CsvRow row : require_table("planner/deepvm_recommendations.csv")) {
    SCOPED_TRACE(fmt::format("deepvm_recommendations.csv:{}", row.line()));
    const DeepVmRequest request{.usd_per_h = row.number("pricing_willingness_usd_h"),
                                .buffers = row.number("buffer_size_arg"),
                                .checkpoint_gib = row.number("ckp_file_size_arg")};
    const std::vector<DeepVmCluster> ranked = recommend(row.text("dataset") == "aws_real" ? real : synthetic,
                                                        request, policy_named(row.word("policy")));
    const auto rank = static_cast<std::size_t>(row.count("rank"));
    if (row.text("architecture") == "none") {
      EXPECT_TRUE(ranked.empty());
    } else {
      ASSERT_LE(rank, ranked.size());
      expect_cluster(row, ranked[rank - 1]);
    }
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

/// The cluster in the policy's column of deepvm_aws_evaluation.csv.
DeepVmCluster evaluated_cluster(const DeepVmMarket& market, const std::string& policy) {
  const DeepVmRequest request{.usd_per_h = 3};
  if (policy.starts_with("cost_first")) return recommend(market, request, DeepVmPolicy::cost_first).at(0);
  if (policy.starts_with("performance_first"))
    return recommend(market, request, DeepVmPolicy::performance_first).at(0);
  const std::size_t at = policy.find("rank ");
  return recommend(market, request, DeepVmPolicy::with_scaling).at(std::stoul(policy.substr(at + 5)) - 1);
}

TEST(DeepVmReference, figure_8_is_recommended_and_priced_as_published) {
  const DeepVmMarket market = deepvm_market("aws_real");
  for (CsvRow row : require_table("planner/deepvm_aws_evaluation.csv")) {
    SCOPED_TRACE(row.text("policy"));
    const DeepVmCluster cluster = evaluated_cluster(market, row.word("policy"));
    EXPECT_EQ(cluster.worker, row.text("worker"));
    EXPECT_EQ(cluster.workers, row.count("workers_total"));
    EXPECT_EQ(cluster.anchor, row.text("anchor"));
    EXPECT_EQ(cluster.anchors, row.count("anchors"));
    EXPECT_NEAR(cluster.usd_per_h, row.number("hourly_price_usd"), 1e-4);
    EXPECT_NEAR(cluster.usd_per_h * row.number("makespan_s") / 3600, row.number("total_cost_usd"), 1e-6);
  }
  const DeepVmCluster fastest_gpus =
      recommend(market, {.usd_per_h = 3}, DeepVmPolicy::performance_first).front();
  EXPECT_EQ(fastest_gpus.worker, "g5.xlarge");
  EXPECT_EQ(fastest_gpus.workers, 7);
  EXPECT_NEAR(fastest_gpus.usd_per_h, 2.8168, 1e-4);
  const DeepVmCluster second = recommend(market, {.usd_per_h = 3}, DeepVmPolicy::with_scaling).at(1);
  EXPECT_EQ(second.anchor, "m6i.xlarge");
  EXPECT_NEAR(second.usd_per_h, 2.8746, 1e-4);
}

TEST(DeepVmReference, the_corrected_objective_separates_cost_from_speed) {
  const DeepVmMarket market = deepvm_market("aws_real");
  const DeepVmCluster cheapest = least_usd(market, {.usd_per_h = 3}).value().cluster;
  EXPECT_EQ(cheapest.worker, "g5.xlarge");
  EXPECT_EQ(cheapest.workers, 1);
  EXPECT_EQ(cheapest.anchors, 0);
  const DeepVmCluster quickest = fastest(market, {.usd_per_h = 3}).value().cluster;
  EXPECT_EQ(quickest.worker, "g4dn.xlarge");
  EXPECT_EQ(quickest.workers, 17);
  EXPECT_EQ(quickest.anchor, "c5.xlarge");
  EXPECT_EQ(quickest.anchors, 1);
}

}  // namespace
}  // namespace tw::plan
