// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>

#include "market/built_in.h"
#include "plan/advise/spot_replay.h"
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

Replay play(const DeadlineJob& job, const std::vector<AvailabilityTrace>& zones, double from_s,
            std::size_t policy) {
  return replay(job, zones, from_s, *spot_policies()[policy]);
}

constexpr std::size_t kGreedy = 1, kUniform = 2, kLive = 3;

/// Costs on a trace, over all beginnings at 72 h intervals; in on-demand machine hours.
struct Means {
  double greedy = 0;
  double uniform = 0;
  double live = 0;
  double least = 0;
  int beginnings = 0;
};

Means means_on(const AvailabilityTrace& trace, Hours hours) {
  const DeadlineJob job = job_on(trace, hours);
  Means means;
  for (double from_s = 0; from_s + job.deadline_s <= trace.length_s(); from_s += 72 * kHour) {
    const double least = least_usd_in_hindsight(job, {trace}, from_s);
    const auto cost = [&](std::size_t policy) {
      const Replay run = play(job, {trace}, from_s, policy);
      EXPECT_FALSE(run.late) << "from " << from_s;
      EXPECT_GE(run.usd, least - 1e-9) << "from " << from_s;
      return run.usd / job.machines;
    };
    means.greedy += cost(kGreedy);
    means.uniform += cost(kUniform);
    means.live += cost(kLive);
    means.least += least / job.machines;
    ++means.beginnings;
  }
  for (double* sum : {&means.greedy, &means.uniform, &means.live, &means.least})
    *sum /= std::max(1, means.beginnings);
  return means;
}

/// The longest job that fits the trace.
Hours hours_for(const AvailabilityTrace& trace) {
  for (const Hours hours : {Hours{48, 64}, Hours{24, 30}, Hours{8, 10}})
    if (hours.deadline * kHour <= trace.length_s()) return hours;
  return {0.5, 0.9};
}

std::string name_of(const testing::TestParamInfo<std::size_t>& info) {
  std::string name = traces()[info.param].id;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

class PolicyOnTrace : public testing::TestWithParam<std::size_t> {};

/// Where greedy is lucky, live costs little more. The prior is that of other campaigns.
TEST_P(PolicyOnTrace, live_is_never_late_and_costs_from_the_optimum_to_little_more_than_greedy) {
  constexpr double kMostAboveGreedy = 1.03;
  const AvailabilityTrace& trace = traces()[GetParam()];
  const Means means = means_on(trace, hours_for(trace));
  ASSERT_GT(means.beginnings, 0);
  EXPECT_LE(means.live, kMostAboveGreedy * means.greedy + 1e-9);
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} |\n", trace.id, means.beginnings, means.least, means.live,
             means.greedy);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PolicyOnTrace);
INSTANTIATE_TEST_SUITE_P(Published, PolicyOnTrace, testing::Range(std::size_t{0}, traces().size()), name_of);

/// Mean of the ratios to the optimum, over all traces that are long enough.
TEST(PolicyReference, with_one_zone_live_costs_at_most_8_percent_more_than_the_optimum) {
  double live = 0, greedy = 0, uniform = 0;
  int long_enough = 0;
  for (const AvailabilityTrace& trace : traces()) {
    const Means means = means_on(trace, {48, 64});
    if (means.beginnings == 0) continue;
    ++long_enough;
    live += 100 * (means.live / means.least - 1);
    greedy += 100 * (means.greedy / means.least - 1);
    uniform += 100 * (means.uniform / means.least - 1);
  }
  fmt::print("{} traces: live +{:.2f} %, greedy +{:.2f} %, uniform progress +{:.2f} %\n", long_enough,
             live / long_enough, greedy / long_enough, uniform / long_enough);
  EXPECT_EQ(long_enough, 31);
  EXPECT_LT(live / long_enough, 8);
  EXPECT_LT(live, 0.5 * std::min(greedy, uniform));
}

std::vector<AvailabilityTrace> campaign(std::string_view name) {
  std::vector<AvailabilityTrace> zones;
  for (const AvailabilityTrace& trace : traces())
    if (trace.id.starts_with(name)) zones.push_back(trace);
  return zones;
}

TEST(PolicyReference, with_six_zones_or_more_live_costs_at_most_5_percent_more_than_the_optimum) {
  for (const char* name : {"cbl-availability-1n-20230215-us-east", "cbl-availability-1n-20230215",
                           "cbl-availability-1n-20221026"}) {
    const std::vector<AvailabilityTrace> zones = campaign(name);
    ASSERT_GE(zones.size(), 6U);
    const DeadlineJob job = job_on(zones.front(), {48, 64});
    double live = 0;
    int starts = 0;
    for (double from_s = 0; from_s + job.deadline_s <= zones.front().length_s(); from_s += 24 * kHour) {
      const Replay run = play(job, zones, from_s, kLive);
      EXPECT_FALSE(run.late) << name << " from " << from_s;
      live += run.usd / least_usd_in_hindsight(job, zones, from_s);
      ++starts;
    }
    fmt::print("{}: {} zones, live +{:.2f} %\n", name, zones.size(), 100 * (live / starts - 1));
    EXPECT_LT(live / starts, 1.05) << name;
  }
}

/// catalog/spot_spells.csv is what ticks of 4 minutes see of the traces, per machine.
TEST(PolicyReference, the_prior_is_counted_from_the_published_traces) {
  const auto campaigns = read_spot_campaigns("spot_spells.csv", market::built_in_file("spot_spells.csv"));
  ASSERT_TRUE(campaigns.ok());
  for (const SpotCampaign& one : campaigns.value()) {
    SpotSpells counted;
    for (const AvailabilityTrace& trace : campaign(one.name)) {
      const int machines = std::max(1, trace.most());
      ZoneHistory history(machines, 4.0 / 60);
      for (const int available : sample_availability(trace, 0, 240, static_cast<int>(trace.length_s() / 240)))
        history.see(available);
      SpotSpells spells = history.spells();
      for (const bool up : {false, true}) {
        for (SpotSpells::Bin& bin : spells.of(up)) {
          bin.hours /= machines;
          bin.ends /= machines;
        }
      }
      counted += spells;
    }
    for (const bool up : {false, true}) {
      for (std::size_t age = 0; age < kSpotAges; ++age) {
        EXPECT_NEAR(counted.of(up)[age].hours, one.spells.of(up)[age].hours, 0.01) << one.name << up << age;
        EXPECT_NEAR(counted.of(up)[age].ends, one.spells.of(up)[age].ends, 0.1) << one.name << up << age;
      }
    }
  }
}

}  // namespace
}  // namespace tw::plan
