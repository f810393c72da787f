// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "plan/spotdnn.h"
#include "plan/test_tables.h"

namespace tw {
namespace {

using testing_tables::require_table;

SpotDnnModel read_model() {
  std::map<std::string, double> values;
  for (CsvRow row : require_table("planner/spotdnn_code_constants.csv"))
    values[row.word("name")] = row.number("value");
  return {.gradient_mb = values.at("S_param_mb"),
          .worker_mb_s = values.at("B_req_mb_s"),
          .server_mb_s = values.at("B_ps_mb_s"),
          .pcie_mb_s = values.at("B_pcie_mb_s"),
          .alpha1 = values.at("alpha1"),
          .beta1 = values.at("beta1"),
          .gamma1 = values.at("gamma1"),
          .gamma2 = values.at("gamma2"),
          .gamma3 = values.at("gamma3"),
          .gamma5 = values.at("gamma5")};
}

std::vector<SpotDnnInstance> read_instances() {
  std::vector<SpotDnnInstance> instances;
  for (CsvRow row : require_table("planner/spotdnn_code_profile.csv"))
    instances.push_back({.name = row.word("instance"),
                         .gpus = row.count("gpus"),
                         .quota = row.count("quota"),
                         .usd_per_h = row.number("spot_usd_h"),
                         .samples_per_s = row.number("samples_per_s"),
                         .batch_per_gpu = row.count("batch_per_gpu")});
  return instances;
}

TEST(SpotDnnReference, plans_of_the_published_provisioner_follow_from_its_constants) {
  TW_SKIP_WITHOUT_TABLES();
  const SpotDnnModel model = read_model();
  const std::vector<SpotDnnInstance> instances = read_instances();
  for (CsvRow row : require_table("planner/spotdnn_code_plans.csv")) {
    SCOPED_TRACE(fmt::format("spotdnn_code_plans.csv:{}", row.line()));
    const SpotDnnTarget target{row.number("objective_loss"), row.number("objective_time_s")};
    const auto plan = published_plan(instances, model, target);
    ASSERT_TRUE(plan.has_value());
    const std::vector<int> counts{row.count("n_p3.2xlarge"), row.count("n_g4dn.4xlarge"),
                                  row.count("n_g3.8xlarge"), row.count("n_g3.16xlarge"),
                                  row.count("n_p2.8xlarge")};
    EXPECT_EQ(plan->counts, counts);
    EXPECT_NEAR(plan->batch, row.number("weighted_batch"), 0.05);
    EXPECT_NEAR(plan->samples_per_s, row.number("samples_per_s"), 0.01);
    EXPECT_NEAR(plan->iterations, row.number("iterations"), 0.5);
    EXPECT_NEAR(plan->time_s, row.number("predicted_time_s"), 0.01);
    EXPECT_NEAR(plan->usd, row.number("predicted_cost_usd"), 1e-5);
    const auto cheapest = cheapest_plan(instances, model, target);
    EXPECT_LE(cheapest->usd, plan->usd);
  }
}

/// The paper names the plan of ResNet-110 at loss 0.9 within 1900 s, and the program agrees.
TEST(SpotDnnReference, the_published_plan_of_resnet_110_is_found) {
  TW_SKIP_WITHOUT_TABLES();
  const auto plan = published_plan(read_instances(), read_model(), {.loss = 0.9, .time_s = 1900});
  EXPECT_EQ(plan->counts, (std::vector<int>{2, 0, 2, 0, 0}));
}

}  // namespace
}  // namespace tw
