// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "plan/policy.h"
#include "plan/test_tables.h"

namespace tw {
namespace {

constexpr double kHour = 3600;

struct Means {
  double greedy = 0;
  double forecast = 0;
  double least = 0;
  int traces = 0;
};

/// Over all traces that are long enough, each from several beginnings; in on-demand machine hours.
Means means_over_traces(double work_h, double deadline_h) {
  const std::string text = testing_tables::read_text(TW_REFERENCE_DIR "/traces/availability.csv");
  const auto traces = read_availability("availability.csv", text);
  Means means;
  for (const AvailabilityTrace& trace : traces.value()) {
    const DeadlineJob job{.work_s = work_h * kHour,
                          .deadline_s = deadline_h * kHour,
                          .change_over_s = 720,
                          .machines = std::max(1, trace.most()),
                          .spot_usd_h = 0.3,
                          .on_demand_usd_h = 1};
    const double beginnings = std::floor((trace.length_s() - job.deadline_s) / (72 * kHour)) + 1;
    for (double from_s = 0; from_s + job.deadline_s <= trace.length_s(); from_s += 72 * kHour) {
      const Replay greedy = replay(job, trace, from_s, Policy::greedy);
      const Replay uniform = replay(job, trace, from_s, Policy::uniform);
      const Replay forecast = replay(job, trace, from_s, Policy::forecast);
      const double least = least_usd_in_hindsight(job, trace, from_s);
      EXPECT_FALSE(greedy.late || uniform.late || forecast.late) << trace.id << " from " << from_s;
      EXPECT_LE(least, std::min(greedy.usd, forecast.usd) + 1e-9) << trace.id << " from " << from_s;
      const double share = 1 / (job.machines * beginnings);
      means.greedy += greedy.usd * share;
      means.forecast += forecast.usd * share;
      means.least += least * share;
    }
    means.traces += beginnings > 0;
  }
  return means;
}

TEST(PolicyReference, on_published_traces_the_forecast_is_never_late_and_between_greedy_and_the_optimum) {
  TW_SKIP_WITHOUT_TABLES();

  const struct { double work_h, deadline_h; } kJobs[] = {{48, 64}, {24, 30}};

  for (const auto& [work_h, deadline_h] : kJobs) {
    const Means means = means_over_traces(work_h, deadline_h);
    EXPECT_GT(means.traces, 20);
    EXPECT_LT(means.forecast, means.greedy) << work_h;
    EXPECT_GE(means.forecast, means.least) << work_h;
    EXPECT_LT(means.forecast - means.least, 0.75 * (means.greedy - means.least)) << work_h;
  }
}

}  // namespace
}  // namespace tw
