// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/model/checkpoint_interval.h"
#include "plan/model/test_tables.h"

namespace tw::plan {
namespace {

using testing_tables::require_table;

TEST(CheckpointIntervalReference, optimum_young_and_daly_agree_with_the_table) {
  for (CsvRow row : require_table("planner/checkpoint_interval_reference.csv")) {
    SCOPED_TRACE(fmt::format("checkpoint_interval_reference.csv:{}", row.line()));
    const CheckpointCost cost{row.number("checkpoint_cost_s"), row.number("mtbf_s"), row.number("restart_s")};
    EXPECT_NEAR(young_interval_s(cost), row.number("young_s"), 1e-4);
    EXPECT_NEAR(daly_interval_s(cost), row.number("daly_s"), 1e-4);
    EXPECT_NEAR(best_interval_s(cost), row.number("exact_optimum_s"), 1e-4);
    EXPECT_NEAR(expected_wall_per_work(cost, best_interval_s(cost)),
                row.number("expected_wall_per_work_at_exact"), 1e-7);
    EXPECT_NEAR(expected_wall_per_work(cost, young_interval_s(cost)),
                row.number("expected_wall_per_work_at_young"), 1e-7);
    EXPECT_NEAR(expected_wall_per_work(cost, daly_interval_s(cost)),
                row.number("expected_wall_per_work_at_daly"), 1e-7);
  }
}

}  // namespace
}  // namespace tw::plan
