// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "plan/fit/fit.h"
#include "plan/methods/parameter_server.h"
#include "plan/methods/test_studies.h"
#include "plan/model/checkpoint_interval.h"
#include "plan/model/cost.h"
#include "plan/model/round_time.h"

/// Compares each row of special_cases.csv, a number from a publication, with the planner's own.
namespace tw::plan {
namespace {

using namespace testing_tables;

constexpr double kSteps = 64000;  // of ResNet-32 on CIFAR-10, in all runs of Li et al.

/// The number after `name` in the row's inputs.
double after(const CsvRow& row, const std::string& name) {
  const std::string& text = row.text("inputs");
  const std::size_t at = text.find(name);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + name.size(), nullptr);
}

/// The number before `unit`.
double before(const CsvRow& row, const std::string& unit, const char* column = "inputs") {
  const std::string& text = row.text(column);
  const std::size_t at = text.find(unit);
  EXPECT_NE(at, std::string::npos) << text;
  const std::size_t space = at == std::string::npos || at == 0 ? 0 : text.rfind(' ', at - 1);
  return std::strtod(text.c_str() + (space == std::string::npos ? 0 : space), nullptr);
}

double granularity(const CsvRow& row) { return speed_up(after(row, "g="), after(row, "k=")); }

/// One of twenty workers is away all the time.
double interruption(const CsvRow& row) {
  const int workers = static_cast<int>(std::lround(1 / after(row, "frequency=")));
  return duration_s({.workers = workers, .undisturbed_s = 1, .lost_at_s = {0}}) - 1;
}

/// Cost of a million samples, machines only.
double machines_usd(const std::string& peers, double samples_per_s) {
  const auto groups = parse_peers(peers).value();
  Prediction prediction;
  prediction.throughput_sps = within_factor(samples_per_s, 1);
  prediction.round_samples = 1;
  prediction.sent_mb = sent_evenly(groups, 0);
  return cost_of({}, groups, prediction, {.data = {.usd_per_gb = 0}}).usd_per_million_samples->value;
}

double dgx2_samples_per_s() {
  for (CsvRow row : testing_tables::require_table("baselines.csv"))
    if (row.text("run") == "baseline-119") return row.number("sps_quoted");
  ADD_FAILURE() << "no baseline-119";
  return 0;
}

double dgx2_usd() { return machines_usd("1xDGX2-8xV100@gc:us", dgx2_samples_per_s()); }

double four_t4(const CsvRow& row) { return machines_usd("4xT4@gc:us", before(row, " samples/s")); }

double saving_of_a10(const CsvRow& row) {
  const double samples_per_s = before(row, " x DGX-2 throughput") * dgx2_samples_per_s();
  return 1 - machines_usd("8xA10@lambda:us-west", samples_per_s) / dgx2_usd();
}

double saving_of_t4(const CsvRow& row) { return 1 - before(row, " USD per 1M") / dgx2_usd(); }

DeepVmCluster first_choice() {
  return recommend(testing_tables::deepvm_market("aws_real"), {.usd_per_h = 3}, DeepVmPolicy::with_scaling)
      .at(0);
}

double first_choice_usd() {
  for (CsvRow row : testing_tables::require_table("planner/deepvm_aws_evaluation.csv"))
    if (row.text("policy").starts_with("deepvm rank 1"))
      return first_choice().usd_per_h * row.number("makespan_s") / 3600;
  ADD_FAILURE() << "no makespan";
  return 0;
}

/// No table has the time of performance-first's choice, only its cost.
double saving_over_performance_first(const CsvRow& row) {
  const std::string& source = row.text("source");
  return 1 - first_choice_usd() / std::stod(source.substr(source.find("vs ") + 3));
}

double speed_up_of_eight() {
  std::vector<double> times;
  for (const testing_tables::K80Run& one : testing_tables::k80_runs(8)) times.push_back(duration_s(one.run));
  return testing_tables::measured_s("1xK80", 0, "same-region", "on_demand") / testing_tables::mean(times);
}

double saving_of_eight() {
  std::vector<double> usd;
  for (const testing_tables::K80Run& one : testing_tables::k80_runs(8))
    usd.push_back(cost_usd(one.run, testing_tables::k80_prices()));
  return 1 - testing_tables::mean(usd) / testing_tables::one_k80_usd();
}

/// Mean time of runs that lose one worker over that of runs that lose none.
double delay_of_one_loss(int workers) {
  std::vector<double> ratios;
  for (const testing_tables::K80Run& one : testing_tables::k80_runs(workers))
    if (one.run.lost_at_s.size() == 1) ratios.push_back(duration_s(one.run) / one.run.undisturbed_s);
  return testing_tables::mean(ratios);
}

double error_of_conserved_work() {
  std::vector<double> errors;
  for (int workers : {2, 4, 8})
    for (const testing_tables::K80Run& one : testing_tables::k80_runs(workers))
      if (!one.run.lost_at_s.empty())
        errors.push_back(100 * std::abs(duration_s(one.run) / one.measured_s - 1));
  EXPECT_EQ(errors.size(), 20U);
  return testing_tables::mean(errors);
}

/// Calibrated where one server is the limit, and on two workers with two servers.
double second_server() {
  const double saturated = kSteps / testing_tables::measured_s("8xV100", 1);
  const double pair = kSteps / testing_tables::measured_s("2xV100", 2);
  double step_s = 0.03;
  double service_s = 0.02;
  for (int i = 0; i < 20; ++i) {
    service_s = solve([&](double s) { return steps_per_s({{8, step_s}}, s); }, saturated, 1e-4, 0.1);
    step_s = solve([&](double s) { return steps_per_s({{2, s}}, service_s, 2); }, pair, 1e-4, 0.5);
  }
  return steps_per_s({{8, step_s}}, service_s, 2) / saturated;
}

/// Calibrated on one worker, four in one region, and one of four abroad; predicts two of four abroad.
double two_regions() {
  const double one_s = testing_tables::measured_s("1xP100", 0) / kSteps;
  const double here = kSteps / testing_tables::measured_s("4xP100", 1);
  const double one_abroad = kSteps / testing_tables::measured_s("4xP100", 1, "3 us-east1 + 1 us-central1");
  const auto at_home = [&](double service_s) { return steps_per_s({{4, one_s - service_s}}, service_s); };
  const double service_s = solve(at_home, here, 1e-4, one_s);
  const double step_s = one_s - service_s;
  const auto abroad = [&](double way_s) {
    return steps_per_s({{3, step_s}, {1, step_s + way_s}}, service_s);
  };
  const double way_s = solve(abroad, one_abroad, 0, 5);
  return here / steps_per_s({{2, step_s}, {2, step_s + way_s}}, service_s);
}

/// Accuracy, interpolated between the measured shares of synchronous work.
double accuracy_gained() {
  std::vector<Point> accuracy;
  for (CsvRow row : testing_tables::require_table("planner/sync_switch_summary.csv"))
    if (row.text("workload") == "cifar10_res32" &&
        (row.text("order") == "BSP_first" || row.text("order") == "ASP"))
      accuracy.push_back({row.number("bsp_percent"), row.number("final_accuracy_pct_mean")});
  return interpolate(accuracy, 5) - interpolate(accuracy, 0);
}

double server_rate(const CsvRow& row) {
  const std::string& quantity = row.text("quantity");
  const int tensors = static_cast<int>(before(row, " tensors", "quantity"));
  EXPECT_GT(tensors, 0) << quantity;
  return 1 / server_step_s(tensors, before(row, " MB", "quantity"));
}

using Computation = double (*)(const CsvRow&);

const std::map<std::string, Computation> kComputations{
    {"granularity_double_g1", granularity},
    {"granularity_double_g10", granularity},
    {"interrupt_penalty_5pct", interruption},
    {"cost_4xT4_ddp_cv", four_t4},
    {"cost_8xA10_cv", saving_of_a10},
    {"cost_8xT4_cv", saving_of_t4},
    {"deepvm_pw3_rank1", [](const CsvRow&) { return first_choice().usd_per_h; }},
    {"deepvm_pw3_rank1_total", [](const CsvRow&) { return first_choice_usd(); }},
    {"deepvm_vs_perffirst", saving_over_performance_first},
    {"transient_8xK80_speedup", [](const CsvRow&) { return speed_up_of_eight(); }},
    {"transient_8xK80_saving_with_ps", [](const CsvRow&) { return saving_of_eight(); }},
    {"transient_revocation_delay_2xK80", [](const CsvRow&) { return delay_of_one_loss(2); }},
    {"transient_revocation_delay_4xK80", [](const CsvRow&) { return delay_of_one_loss(4); }},
    {"transient_revocation_delay_8xK80", [](const CsvRow&) { return delay_of_one_loss(8); }},
    {"revocation_work_conservation", [](const CsvRow&) { return error_of_conserved_work(); }},
    {"ps_bottleneck_8xV100", [](const CsvRow&) { return second_server(); }},
    {"cross_region_4xP100", [](const CsvRow&) { return two_regions(); }},
    {"cmdare_checkpoint_fit", [](const CsvRow&) { return remote_checkpoint_s(100); }},
    {"syncswitch_cifar10_acc", [](const CsvRow&) { return accuracy_gained(); }},
    {"ps_service_time", server_rate}};

/// In the table's form: 2xp3.2xlarge+2xg3.8xlarge.
std::string spotdnn_choice(const CsvRow& row) {
  const std::vector<SpotDnnInstance> instances = testing_tables::spotdnn_instances();
  const SpotDnnTarget target{.loss = after(row, "loss "), .time_s = before(row, " s")};
  const auto plan = published_plan(instances, testing_tables::spotdnn_model(), target);
  if (!plan) return "none";
  std::string text;
  for (std::size_t i = 0; i < instances.size(); ++i)
    if (plan->counts[i] > 0)
      text += fmt::format("{}{}x{}", text.empty() ? "" : "+", plan->counts[i], instances[i].name);
  return text;
}

TEST(SpecialCases, each_published_number_is_met_within_its_tolerance) {
  for (CsvRow row : testing_tables::require_table("planner/special_cases.csv")) {
    const std::string id = row.word("id");
    SCOPED_TRACE(fmt::format("special_cases.csv:{} {}", row.line(), id));
    if (row.text("family") == "spotdnn") {
      EXPECT_EQ(spotdnn_choice(row), row.text("expected"));
      continue;
    }
    const auto computation = kComputations.find(id);
    if (computation == kComputations.end()) {
      ADD_FAILURE() << "no computation for this row";
      continue;
    }
    const double value = computation->second(row);
    EXPECT_NEAR(value, row.number("expected"), row.number("tolerance"));
    fmt::print("| {} | {} | {:.6g} | {} |\n", id, row.text("expected"), value, row.text("tolerance"));
    EXPECT_TRUE(row.status().ok()) << row.status().error().message;
  }
}

}  // namespace
}  // namespace tw::plan
