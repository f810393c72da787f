// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/policy.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace tw::plan {
namespace {

constexpr Policy kPolicies[] = {Policy::on_demand, Policy::greedy, Policy::uniform, Policy::forecast};
constexpr double kHour = 3600;

AvailabilityTrace trace_of(std::vector<AvailabilityTrace::Change> changes) {
  return {.id = "made up", .changes = std::move(changes)};
}

DeadlineJob job_of(double work_h, double deadline_h) {
  return {.work_s = work_h * kHour,
          .deadline_s = deadline_h * kHour,
          .change_over_s = 600,
          .machines = 1,
          .spot_usd_h = 1,
          .on_demand_usd_h = 3};
}

TEST(Policy, without_spot_machines_all_policies_end_in_time_on_demand) {
  const AvailabilityTrace none = trace_of({{0, 0}, {100 * kHour, 0}});
  for (Policy policy : kPolicies) {
    const Replay run = replay(job_of(10, 12), none, 0, policy);
    EXPECT_FALSE(run.late) << to_string(policy);
    EXPECT_EQ(run.spot_h, 0) << to_string(policy);
    EXPECT_GE(run.on_demand_h, 10 + 1.0 / 6 - 1e-9) << to_string(policy);
  }
  EXPECT_NEAR(least_usd_in_hindsight(job_of(10, 12), none, 0), 3 * (10 + 1.0 / 6), 1e-9);
}

TEST(Policy, with_spot_machines_all_the_time_only_all_on_demand_pays_more) {
  const AvailabilityTrace always = trace_of({{0, 1}, {100 * kHour, 1}});
  const double least = least_usd_in_hindsight(job_of(10, 12), always, 0);
  EXPECT_NEAR(least, 10 + 1.0 / 6, 1e-9);
  EXPECT_NEAR(replay(job_of(10, 12), always, 0, Policy::greedy).usd, least, 1e-9);
  EXPECT_NEAR(replay(job_of(10, 12), always, 0, Policy::uniform).usd, least, 1e-9);
  EXPECT_NEAR(replay(job_of(10, 12), always, 0, Policy::forecast).usd, least, 1e-9);
  EXPECT_NEAR(replay(job_of(10, 12), always, 0, Policy::on_demand).usd, 3 * least, 1e-9);
}

TEST(Policy, who_knows_the_future_waits_for_the_spot_machines_of_tomorrow) {
  const AvailabilityTrace later = trace_of({{0, 0}, {8 * kHour, 1}, {20 * kHour, 0}, {30 * kHour, 0}});
  EXPECT_NEAR(least_usd_in_hindsight(job_of(10, 20), later, 0), 10 + 1.0 / 6, 1e-9);
  EXPECT_GT(replay(job_of(10, 20), later, 0, Policy::uniform).on_demand_h, 1);
}

TEST(Policy, an_interrupted_start_is_paid_and_does_no_work) {
  const AvailabilityTrace flicker = trace_of({{0, 1}, {300, 0}, {600, 1}, {900, 0}, {40 * kHour, 0}});
  const Replay run = replay(job_of(10, 12), flicker, 0, Policy::greedy);
  EXPECT_NEAR(run.spot_h, 2.0 / 12, 1e-9);
  EXPECT_EQ(run.interruptions, 2);
  EXPECT_FALSE(run.late);
}

/// Availability that goes up and down in spells of random lengths and random means.
AvailabilityTrace random_trace(Prng& random, int machines, double hours) {
  std::vector<AvailabilityTrace::Change> changes;
  const double mean_s = 600 + 20000 * random.uniform();
  for (double at_s = 0; at_s < hours * kHour; at_s += 60 + 2 * mean_s * random.uniform())
    changes.push_back({at_s, static_cast<int>(random.below(static_cast<std::uint64_t>(machines) + 1))});
  changes.push_back({2 * hours * kHour, 0});
  return trace_of(std::move(changes));
}

TEST(Policy, is_never_late_and_never_cheaper_than_the_optimum) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Prng random(seed);
    DeadlineJob job = job_of(4 + 8 * random.uniform(), 0);
    job.machines = seed % 3 == 0 ? 4 : 1;
    job.change_over_s = static_cast<double>(random.below(4)) * 250;
    job.deadline_s = job.work_s * (1.1 + random.uniform()) + job.change_over_s + 600;
    ASSERT_TRUE(feasible(job));
    const AvailabilityTrace trace = random_trace(random, job.machines, 40);
    const double least = least_usd_in_hindsight(job, trace, 0);
    for (Policy policy : kPolicies) {
      const Replay run = replay(job, trace, 0, policy);
      EXPECT_FALSE(run.late) << to_string(policy) << " seed " << seed;
      EXPECT_LE(run.finished_s, job.deadline_s + 1e-6) << to_string(policy) << " seed " << seed;
      EXPECT_GE(run.usd, least - 1e-9) << to_string(policy) << " seed " << seed;
    }
  }
}

TEST(Policy, a_deadline_shorter_than_work_and_change_over_cannot_be_kept) {
  EXPECT_TRUE(feasible(job_of(10, 10.2)));
  EXPECT_FALSE(feasible(job_of(10, 10.1)));
}

TEST(Availability, the_least_number_of_a_tick_counts) {
  const AvailabilityTrace trace = trace_of({{100, 3}, {150, 1}, {160, 4}, {400, 2}, {500, 2}});
  EXPECT_EQ(sample_availability(trace, 0, 100, 5), (std::vector<int>{1, 4, 4, 2, 0}));
  EXPECT_EQ(sample_availability(trace, 60, 100, 2), (std::vector<int>{4, 4}));
}

TEST(Availability, a_malformed_row_is_named) {
  const auto traces = read_availability("t.csv", "trace_id,t_seconds,available\na,0,1\na,5,many\n");
  ASSERT_FALSE(traces.ok());
  EXPECT_NE(traces.error().message.find("t.csv:3"), std::string::npos) << traces.error().message;
  EXPECT_NE(traces.error().message.find("many"), std::string::npos) << traces.error().message;
  EXPECT_FALSE(read_availability("t.csv", "trace_id,t_seconds,available\na,5,1\na,5,2\n").ok());
}

}  // namespace
}  // namespace tw::plan
