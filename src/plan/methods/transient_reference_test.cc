// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan/methods/parameter_server.h"
#include "plan/methods/test_studies.h"
#include "plan/model/checkpoint_interval.h"
#include "plan/model/fit.h"

namespace tw::plan {
namespace {

using namespace testing_tables;

constexpr double kSteps = 64000;  // of ResNet-32 on CIFAR-10, in all runs

TEST(TransientReference, work_is_conserved_when_workers_are_revoked) {
  std::vector<double> errors;
  for (int workers : {2, 4, 8})
    for (const testing_tables::K80Run& one : testing_tables::k80_runs(workers))
      if (!one.run.lost_at_s.empty()) errors.push_back(std::abs(duration_s(one.run) / one.measured_s - 1));
  ASSERT_GT(errors.size(), 5U);
  EXPECT_LE(testing_tables::mean(errors), 0.02);
  EXPECT_LE(*std::max_element(errors.begin(), errors.end()), 0.04);
}

TEST(TransientReference, what_runs_cost_follows_from_uptimes_and_prices) {
  for (int workers : {4, 8})  // of two the publication pays the revoked one to the end
    for (const testing_tables::K80Run& one : testing_tables::k80_runs(workers)) {
      if (one.measured_usd == 0) continue;
      EXPECT_NEAR(cost_usd(one.run, testing_tables::k80_prices()) / one.measured_usd, 1, 0.06);
    }
}

/// Li et al. print 62.9 %.
TEST(TransientReference, eight_transient_k80_without_a_server_are_63_percent_cheaper_than_one) {
  std::vector<double> usd;
  for (const testing_tables::K80Run& one : testing_tables::k80_runs(8))
    usd.push_back(cost_usd(one.run, {testing_tables::k80_prices().worker_usd_per_s, 0}));
  EXPECT_NEAR(1 - testing_tables::mean(usd) / testing_tables::one_k80_usd(), 0.630, 0.005);
}

/// Plateaus of models whose parameters are known: the fastest cluster with one server.
TEST(ParameterServerReference, the_service_time_of_a_server_limits_clusters_as_measured) {
  const struct {
    const char* model;
    int tensors;
    double megabytes;
  } kModels[] = {{"res15", 50, 2.78}, {"res32", 104, 7.43}, {"shakebig", 216, 104.8}};

  for (const auto& [model, tensors, megabytes] : kModels) {
    std::vector<double> rates;
    for (CsvRow row : testing_tables::require_table("planner/cmdare_speed_vs_workers.csv"))
      if (row.text("model") == model && row.text("gpu") == "P100" && row.count("parameter_servers") == 1)
        rates.push_back(row.number("steps_per_s"));
    if (rates.empty()) continue;
    EXPECT_NEAR(1 / server_step_s(tensors, megabytes) / *std::max_element(rates.begin(), rates.end()), 1,
                0.15)
        << model;
  }
}

TEST(CmDareReference, checkpoints_to_remote_storage_take_a_time_linear_in_their_size) {
  std::vector<double> errors;
  for (CsvRow row : testing_tables::require_table("planner/checkpoint_times.csv"))
    errors.push_back(std::abs(remote_checkpoint_s(row.number("checkpoint_mb")) / row.number("total_s") - 1));
  EXPECT_LE(testing_tables::mean(errors), 0.08);
  EXPECT_LE(*std::max_element(errors.begin(), errors.end()), 0.25);
}

/// Time left after a revocation: replacing the worker, then the steps that are left. Each row is predicted
/// from the others.
TEST(CmDareReference, time_left_after_a_revocation_is_predicted) {
  std::vector<Point> measured;
  for (CsvRow row : testing_tables::require_table("planner/cmdare_estimated_vs_actual.csv"))
    measured.push_back({kSteps - row.number("revocation_step"), row.number("actual_s")});
  std::vector<double> errors;
  for (std::size_t left_out = 0; left_out < measured.size(); ++left_out) {
    std::vector<Point> others = measured;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    const Point& point = measured[left_out];
    errors.push_back(std::abs(fit_line(others).at(point.x) / point.y - 1));
  }
  EXPECT_LE(testing_tables::mean(errors), 0.03);
}

TEST(SyncSwitchReference, time_is_linear_in_the_synchronous_share) {
  std::vector<Point> times;
  for (CsvRow row : testing_tables::require_table("planner/sync_switch_summary.csv"))
    if (row.text("workload") == "cifar10_res32" &&
        (row.text("order") == "BSP_first" || row.text("order") == "ASP"))
      times.push_back({row.number("bsp_percent"), row.number("time_s_median")});
  const LinearFit line = fit_line(times);
  for (const Point& point : times) EXPECT_NEAR(line.at(point.x) / point.y, 1, 0.05) << point.x;
}

}  // namespace
}  // namespace tw::plan
