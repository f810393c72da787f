// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "plan/fit/fit.h"
#include "plan/methods/parameter_server.h"
#include "plan/methods/test_studies.h"
#include "plan/model/checkpoint_interval.h"

namespace tw::plan {
namespace {

using namespace testing_tables;

constexpr double kSteps = 64000;  // of ResNet-32 on CIFAR-10, in all runs

double worst(const std::vector<double>& errors) { return *std::max_element(errors.begin(), errors.end()); }

/// Absolute relative errors; each point is predicted by a line through the others.
std::vector<double> errors_left_out(const std::vector<Point>& measured) {
  std::vector<double> errors;
  for (std::size_t left_out = 0; left_out < measured.size(); ++left_out) {
    std::vector<Point> others = measured;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    errors.push_back(std::abs(fit_line(others).at(measured[left_out].x) / measured[left_out].y - 1));
  }
  return errors;
}

TEST(TransientReference, work_is_conserved_when_workers_are_revoked) {
  std::vector<double> errors;
  for (int workers : {2, 4, 8})
    for (const testing_tables::K80Run& one : testing_tables::k80_runs(workers))
      if (!one.run.lost_at_s.empty()) errors.push_back(std::abs(duration_s(one.run) / one.measured_s - 1));
  ASSERT_GT(errors.size(), 5U);
  EXPECT_LE(testing_tables::mean(errors), 0.02);
  EXPECT_LE(*std::max_element(errors.begin(), errors.end()), 0.04);
}

/// Step time of one K80 without its server, from the undisturbed runs with this many workers. The server's
/// part follows its law, which was fitted to another study.
double k80_step_s(int workers) {
  const double server_s = server_step_s(104, 7.43);  // ResNet-32
  const double measured_s = testing_tables::k80_runs(workers).front().run.undisturbed_s;
  return solve(
      [&](double step_s) {
        return kSteps / steps_per_s({{workers, step_s}}, server_s);
      },
      measured_s, 1e-3, 1);
}

/// The runs of a cluster size, with speeds predicted from the other sizes.
std::vector<testing_tables::K80Run> k80_runs_unseen(int workers, bool with_server) {
  double step_s = 0, alone_s = 0;
  for (int other : {2, 4, 8}) {
    if (other == workers) continue;
    step_s += k80_step_s(other) / 2;
    alone_s += testing_tables::k80_runs(other).front().run.undisturbed_s * other / 2;
  }
  std::vector<testing_tables::K80Run> runs = testing_tables::k80_runs(workers);
  for (testing_tables::K80Run& one : runs) {
    one.run.undisturbed_s = alone_s / workers;
    if (!with_server) continue;
    for (int live = 1; live <= workers; ++live)
      one.run.speeds.push_back(steps_per_s({{live, step_s}}, server_step_s(104, 7.43)));
    one.run.undisturbed_s = kSteps / one.run.speeds.back();
  }
  return runs;
}

struct UnseenErrors {
  std::vector<double> lost, undisturbed;  ///< absolute errors of runs with losses, and of those without
};

UnseenErrors errors_of_unseen_sizes(bool with_server) {
  UnseenErrors errors;
  for (int workers : {2, 4, 8})
    for (const testing_tables::K80Run& one : k80_runs_unseen(workers, with_server))
      (one.run.lost_at_s.empty() ? errors.undisturbed : errors.lost)
          .push_back(std::abs(duration_s(one.run) / one.measured_s - 1));
  return errors;
}

/// Cross-validation: each cluster size is left out and predicted from the two others. Without the server, the
/// worst run with revocations is off by 7.9 %; with it, by 3.9 %. One of 74 undisturbed runs took 13 % longer
/// than all others of its size, which the law cannot explain.
TEST(TransientReference, runs_of_a_cluster_size_that_was_left_out_are_predicted_from_the_others) {
  const UnseenErrors linear = errors_of_unseen_sizes(false);
  const UnseenErrors served = errors_of_unseen_sizes(true);
  for (const auto& [name, errors] : {std::pair("without the server", linear), std::pair("with it", served)})
    fmt::print("| {} | {} | {:.2f} % | {:.2f} % | {} | {:.2f} % | {:.2f} % |\n", name, errors.lost.size(),
               100 * testing_tables::mean(errors.lost), 100 * worst(errors.lost), errors.undisturbed.size(),
               100 * testing_tables::mean(errors.undisturbed), 100 * worst(errors.undisturbed));
  ASSERT_EQ(served.lost.size(), 20U);
  EXPECT_NEAR(worst(linear.lost), 0.079, 0.001);
  EXPECT_LE(testing_tables::mean(served.lost), 0.015);
  EXPECT_LE(worst(served.lost), 0.04);
  EXPECT_LE(testing_tables::mean(served.undisturbed), 0.02);
  EXPECT_LE(worst(served.undisturbed), 0.13);
}

/// Each zone is left out and predicted from runs elsewhere.
TEST(TransientReference, runs_of_a_zone_that_was_left_out_are_predicted_from_the_others) {
  std::vector<double> errors;
  for (int workers : {2, 4, 8}) {
    const auto runs = testing_tables::k80_runs(workers);
    for (testing_tables::K80Run one : runs) {
      if (one.run.lost_at_s.empty()) continue;
      std::vector<double> elsewhere_s;
      for (const testing_tables::K80Run& other : runs)
        if (other.zone != one.zone && other.run.lost_at_s.empty() && other.in_table)
          elsewhere_s.push_back(other.measured_s);
      one.run.undisturbed_s = median(elsewhere_s);
      errors.push_back(std::abs(duration_s(one.run) / one.measured_s - 1));
    }
  }
  ASSERT_EQ(errors.size(), 20U);
  EXPECT_LE(testing_tables::mean(errors), 0.016);
  EXPECT_LE(worst(errors), 0.04);
}

TEST(TransientReference, what_runs_cost_follows_from_uptimes_and_prices) {
  for (int workers : {4, 8})  // with two, the publication counts the revoked one to the end
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

/// Plateaus of models with known parameters: the fastest cluster with one server.
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

/// Two constants for three models: each model is left out, and the constants are solved from the two others.
/// For a model between these two, that holds within 6 %. A model 14 times as large as both is out of range:
/// its rate comes out 1.5 times as measured.
TEST(ParameterServerReference, the_service_time_holds_for_a_model_between_those_it_was_fitted_to) {
  struct Plateau {
    double tensors, megabytes, step_s;
  };

  std::vector<Plateau> plateaus;
  for (const auto& [model, tensors, megabytes] :
       {std::tuple("res15", 50, 2.78), std::tuple("res32", 104, 7.43), std::tuple("shakebig", 216, 104.8)}) {
    double most = 0;
    for (CsvRow row : require_table("planner/cmdare_speed_vs_workers.csv"))
      if (row.text("model") == model && row.text("gpu") == "P100" && row.count("parameter_servers") == 1)
        most = std::max(most, row.number("steps_per_s"));
    ASSERT_GT(most, 0) << model;
    plateaus.push_back({static_cast<double>(tensors), megabytes, 1 / most});
  }
  const auto error_without = [&](std::size_t out) {
    const Plateau& a = plateaus[(out + 1) % 3];
    const Plateau& b = plateaus[(out + 2) % 3];
    const double det = a.tensors * b.megabytes - b.tensors * a.megabytes;
    const double per_tensor = (a.step_s * b.megabytes - b.step_s * a.megabytes) / det;
    const double per_megabyte = (a.tensors * b.step_s - b.tensors * a.step_s) / det;
    const Plateau& left = plateaus[out];
    return left.step_s / (per_tensor * left.tensors + per_megabyte * left.megabytes) - 1;
  };
  EXPECT_NEAR(error_without(0), 0, 0.06);
  EXPECT_NEAR(error_without(1), 0, 0.06);
  EXPECT_NEAR(error_without(2), 0.54, 0.01);
}

/// Each row is predicted by a line through the others.
TEST(CmDareReference, the_time_of_a_checkpoint_that_was_left_out_is_predicted_from_the_others) {
  std::vector<Point> measured;
  for (CsvRow row : testing_tables::require_table("planner/checkpoint_times.csv"))
    measured.push_back({row.number("checkpoint_mb"), row.number("total_s")});
  const std::vector<double> errors = errors_left_out(measured);
  EXPECT_LE(testing_tables::mean(errors), 0.08);
  EXPECT_LE(worst(errors), 0.20);
}

TEST(CmDareReference, checkpoints_to_remote_storage_take_a_time_linear_in_their_size) {
  std::vector<double> errors;
  for (CsvRow row : testing_tables::require_table("planner/checkpoint_times.csv"))
    errors.push_back(std::abs(remote_checkpoint_s(row.number("checkpoint_mb")) / row.number("total_s") - 1));
  EXPECT_LE(testing_tables::mean(errors), 0.08);
  EXPECT_LE(*std::max_element(errors.begin(), errors.end()), 0.25);
}

/// Remaining time after a revocation: replacing the worker, then the remaining steps. Each row is predicted
/// from the others.
TEST(CmDareReference, time_left_after_a_revocation_is_predicted) {
  std::vector<Point> measured;
  for (CsvRow row : testing_tables::require_table("planner/cmdare_estimated_vs_actual.csv"))
    measured.push_back({kSteps - row.number("revocation_step"), row.number("actual_s")});
  const std::vector<double> errors = errors_left_out(measured);
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
  EXPECT_LE(worst(errors_left_out(times)), 0.03);
}

}  // namespace
}  // namespace tw::plan
