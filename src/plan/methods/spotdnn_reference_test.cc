// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/methods/test_studies.h"

namespace tw::plan {
namespace {

using namespace testing_tables;

TEST(SpotDnnReference, plans_of_the_published_provisioner_follow_from_its_constants) {
  const SpotDnnModel model = testing_tables::spotdnn_model();
  const std::vector<SpotDnnInstance> instances = testing_tables::spotdnn_instances();
  for (CsvRow row : testing_tables::require_table("planner/spotdnn_code_plans.csv")) {
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

}  // namespace
}  // namespace tw::plan
