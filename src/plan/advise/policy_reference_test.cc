// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>

#include "plan/advise/policy.h"
#include "plan/model/test_tables.h"

namespace tw::plan {
namespace {

constexpr double kHour = 3600;

const std::vector<AvailabilityTrace>& traces() {
  static const auto all = read_availability(
      "availability.csv", testing_tables::read_text(TW_REFERENCE_DIR "/traces/availability.csv"));
  static const std::vector<AvailabilityTrace> none;
  return all ? all.value() : none;
}

struct Hours {
  double work = 0;
  double deadline = 0;
};

DeadlineJob job_on(const AvailabilityTrace& trace, Hours hours) {
  return {.work_s = hours.work * kHour,
          .deadline_s = hours.deadline * kHour,
          .change_over_s = 720,
          .machines = std::max(1, trace.most()),
          .spot_usd_h = 0.3,
          .on_demand_usd_h = 1};
}

/// Costs on a trace, over all beginnings at 72 h intervals; in on-demand machine hours.
struct Means {
  double greedy = 0;
  double forecast = 0;
  double least = 0;
  int beginnings = 0;
};

Means means_on(const AvailabilityTrace& trace, Hours hours) {
  const DeadlineJob job = job_on(trace, hours);
  Means means;
  for (double from_s = 0; from_s + job.deadline_s <= trace.length_s(); from_s += 72 * kHour) {
    const Replay greedy = replay(job, trace, from_s, Policy::greedy);
    const Replay uniform = replay(job, trace, from_s, Policy::uniform);
    const Replay forecast = replay(job, trace, from_s, Policy::forecast);
    const double least = least_usd_in_hindsight(job, trace, from_s);
    EXPECT_FALSE(greedy.late || uniform.late || forecast.late) << "from " << from_s;
    EXPECT_LE(least, std::min({greedy.usd, uniform.usd, forecast.usd}) + 1e-9) << "from " << from_s;
    means.greedy += greedy.usd / job.machines;
    means.forecast += forecast.usd / job.machines;
    means.least += least / job.machines;
    ++means.beginnings;
  }
  for (double* sum : {&means.greedy, &means.forecast, &means.least}) *sum /= std::max(1, means.beginnings);
  return means;
}

/// The longest job that fits the trace.
Hours hours_for(const AvailabilityTrace& trace) {
  for (const Hours hours : {Hours{48, 64}, Hours{24, 30}, Hours{8, 10}})
    if (hours.deadline * kHour <= trace.length_s()) return hours;
  return {0.5, 0.9};
}

/// Traces on which greedy is lucky (bench/results/2026-11-22.md); on all others the forecast costs no more.
constexpr const char* kAboveGreedy[] = {"cbl-availability-1n-20221026-us-west-2b-k80x1",
                                        "cbl-availability-1n-20221026-us-west-2b-v100x8",
                                        "cbl-availability-16n-20230827-us-west-2a-v100x1",
                                        "cbl-availability-16n-20230827-us-west-2c-v100x1",
                                        "cbl-preemption-1n-20230419-us-east-1c-cpu-r5.16xlarge",
                                        "cbl-preemption-1n-20230430-us-east1-b-cpu-c3-highcpu-88"};
constexpr double kMostAboveGreedy = 1.065;

double most_of_greedy(const std::string& trace) {
  const bool above =
      std::find(std::begin(kAboveGreedy), std::end(kAboveGreedy), trace) != std::end(kAboveGreedy);
  return above ? kMostAboveGreedy : 1 + 1e-9;
}

class PolicyOnTrace : public testing::TestWithParam<std::size_t> {};

/// Between the optimum in hindsight, checked in means_on, and greedy.
TEST_P(PolicyOnTrace, forecast_is_never_late_and_costs_from_the_optimum_to_greedy) {
  const AvailabilityTrace& trace = traces()[GetParam()];
  const Means means = means_on(trace, hours_for(trace));
  ASSERT_GT(means.beginnings, 0);
  EXPECT_LE(means.forecast, most_of_greedy(trace.id) * means.greedy);
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} |\n", trace.id, means.beginnings, means.least,
             means.forecast, means.greedy);
}

std::string name_of(const testing::TestParamInfo<std::size_t>& info) {
  std::string name = traces()[info.param].id;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PolicyOnTrace);
INSTANTIATE_TEST_SUITE_P(Published, PolicyOnTrace, testing::Range(std::size_t{0}, traces().size()), name_of);

/// Over all traces that are long enough.
TEST(PolicyReference, on_published_traces_the_forecast_lies_between_greedy_and_the_optimum) {
  for (const Hours hours : {Hours{48, 64}, Hours{24, 30}}) {
    Means all;
    int above_greedy = 0, long_enough = 0;
    for (const AvailabilityTrace& trace : traces()) {
      const Means means = means_on(trace, hours);
      if (means.beginnings == 0) continue;
      ++long_enough;
      above_greedy += means.forecast > means.greedy + 1e-9;
      all.greedy += means.greedy;
      all.forecast += means.forecast;
      all.least += means.least;
    }
    fmt::print(
        "{} h of work in {} h: {} traces, {} of them above greedy; optimum {:.2f}, forecast {:.2f}, "
        "greedy {:.2f}\n",
        hours.work, hours.deadline, long_enough, above_greedy, all.least / long_enough,
        all.forecast / long_enough, all.greedy / long_enough);
    EXPECT_GT(long_enough, 20);
    EXPECT_LT(all.forecast, all.greedy) << hours.work;
    EXPECT_LT(all.forecast - all.least, 0.75 * (all.greedy - all.least)) << hours.work;
    EXPECT_LE(above_greedy, 0.3 * long_enough) << hours.work;
  }
}

}  // namespace
}  // namespace tw::plan
