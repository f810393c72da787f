// SPDX-License-Identifier: Apache-2.0
#include "plan/search/scenarios.h"

#include <gtest/gtest.h>

#include <numeric>

#include "plan/model/checkpoint_interval.h"

namespace tw::plan {
namespace {

PlannedRun run_of(int machines, const market::LifetimeLaw& lifetimes) {
  PlannedRun run{.samples = 3.6e6, .samples_per_round = 1000, .usd_per_sample = 1e-6};
  run.round = {.seconds = 1, .usd = 0.001};
  for (int m = 0; m < machines; ++m)
    run.machines.push_back(
        {.samples_per_s = 250, .usd_per_h = 2, .lifetimes = lifetimes, .wait_s = 60, .join_s = 30});
  return run;
}

TEST(Scenarios, machines_that_nobody_takes_need_the_time_and_money_of_the_model) {
  const Outcomes outcomes = play_scenarios(run_of(4, market::never_taken()), 3);
  const Spread hours = spread_of(outcomes.hours);
  EXPECT_NEAR(hours.p10, 2 + 90.0 / 3600, 1e-9);  // rounds of 1 s calculating and 1 s averaging
  EXPECT_EQ(hours.p10, hours.p90);
  EXPECT_NEAR(outcomes.usd[0], 4 * 2 * (2 + 30.0 / 3600) + 3.6 + 3.6, 1e-9);
  EXPECT_EQ(outcomes.losses, 0);
}

TEST(Scenarios, calculating_lasts_as_long_as_averaging_asks_for) {
  PlannedRun run = run_of(4, market::never_taken());
  run.round.calc_s = 3;
  EXPECT_NEAR(play_scenarios(run, 1).hours[0], 4 + 90.0 / 3600, 1e-9);  // 3 s and 1 s of averaging
}

TEST(Scenarios, who_is_taken_often_takes_longer_and_varies) {
  const Outcomes calm = play_scenarios(run_of(4, market::lifetimes_named("exponential:20").value()));
  const Outcomes rough = play_scenarios(run_of(4, market::lifetimes_named("exponential:0.5").value()));
  EXPECT_GT(spread_of(rough.hours).p50, spread_of(calm.hours).p50);
  EXPECT_GT(spread_of(rough.hours).p90, spread_of(rough.hours).p10);
  EXPECT_GT(rough.losses, 10 * calm.losses);
}

/// 4 machines for 2 hours, each gone after 20 hours: 0.4 losses are expected.
TEST(Scenarios, losses_come_at_the_rate_of_the_law) {
  const Outcomes outcomes =
      play_scenarios(run_of(4, market::lifetimes_named("exponential:20").value()), 4000);
  EXPECT_NEAR(outcomes.losses, 0.41, 0.04);
}

TEST(Scenarios, a_notice_saves_what_was_done) {
  PlannedRun run = run_of(4, market::lifetimes_named("exponential:0.5").value());
  const double without = spread_of(play_scenarios(run).hours).p50;
  for (PlannedMachine& machine : run.machines) machine.notice = true;
  EXPECT_LT(spread_of(play_scenarios(run).hours).p50, without);
}

/// One machine that lives an hour trains 4 hours of work: it takes as long as Daly's formula says.
TEST(Scenarios, the_last_machine_takes_the_work_since_the_checkpoint_with_it) {
  PlannedRun run = run_of(1, market::lifetimes_named("exponential:1").value());
  run.machines[0].join_s = run.machines[0].wait_s = 0;
  const double without_h = spread_of(play_scenarios(run, 1000).hours).p50;
  EXPECT_NEAR(without_h, 4, 0.02);
  run.checkpoint_s = 100;
  run.checkpoint_interval_s = 800;
  const std::vector<double> hours = play_scenarios(run, 1000).hours;
  const double mean_h = std::accumulate(hours.begin(), hours.end(), 0.0) / 1000;
  EXPECT_NEAR(mean_h, 4 * expected_wall_per_work({.checkpoint_s = 100, .mtbf_s = 3600}, 800), 0.2);
  run.machines[0].saves = true;
  EXPECT_NEAR(spread_of(play_scenarios(run, 1000).hours).p90, 4 * 900.0 / 800, 1e-6) << "it saves the state";
}

TEST(Scenarios, a_machine_that_stays_keeps_the_work_of_those_that_go) {
  PlannedRun run = run_of(2, market::lifetimes_named("exponential:0.5").value());
  run.machines[0].lifetimes = market::never_taken();
  const Outcomes without = play_scenarios(run);
  run.checkpoint_interval_s = 1e5;  // none is written
  EXPECT_EQ(play_scenarios(run).hours, without.hours);
}

TEST(Scenarios, predicted_speeds_err_within_their_range_in_80_percent) {
  PlannedRun run = run_of(4, market::never_taken());
  for (PlannedMachine& machine : run.machines) {
    machine.factor = 1.5;
    machine.join_s = machine.wait_s = 0;
  }
  run.round.seconds = 0;
  const Spread hours = spread_of(play_scenarios(run, 4000).hours);
  EXPECT_NEAR(hours.p10 * 1.5, 1, 0.03);
  EXPECT_NEAR(hours.p90 / 1.5, 1, 0.03);
}

TEST(Scenarios, all_machines_err_together_and_the_worst_luck_is_that_of_the_scenarios) {
  PlannedRun run = run_of(4, market::never_taken());
  for (PlannedMachine& machine : run.machines) {
    machine.factor = 1.5;
    machine.join_s = machine.wait_s = 0;
  }
  run.round.seconds = 0;
  const double hours = 1 / error_of(1.5, worst_luck(0.1));
  EXPECT_NEAR(spread_of(play_scenarios(run).hours).p90 / hours, 1, 1e-3);
  EXPECT_NEAR(error_of(1.5, worst_luck(0.1, 4000)) * 1.5, 1, 0.03);
}

TEST(Scenarios, the_same_plan_has_the_same_luck) {
  const PlannedRun run = run_of(3, market::lifetimes_named("exponential:1").value());
  EXPECT_EQ(play_scenarios(run).hours, play_scenarios(run).hours);
}

/// Two spot machines in each of two failure domains, for some 2 hours. Each domain has 24 shocks a day, and
/// each shock hits half of its running machines.
TEST(Scenarios, shocks_strike_the_spot_machines_of_a_failure_domain_together) {
  PlannedRun run = run_of(4, market::never_taken());
  for (std::size_t m = 0; m < run.machines.size(); ++m) {
    run.machines[m].spot = true;
    run.machines[m].domain = static_cast<int>(100 + m / 2);
  }
  const Outcomes calm = play_scenarios(run, 1000);
  EXPECT_EQ(calm.losses, 0);
  run.shocks = {.per_day = 24, .share = 0.5};
  const Outcomes rough = play_scenarios(run, 1000);
  EXPECT_NEAR(rough.losses, 4 * 0.5 * spread_of(rough.hours).p50, 0.4);
  EXPECT_GT(spread_of(rough.hours).p50, spread_of(calm.hours).p50);

  // The same number of losses varies less if they are independent.
  PlannedRun apart = run;
  for (std::size_t m = 0; m < apart.machines.size(); ++m) apart.machines[m].domain = static_cast<int>(m);
  apart.shocks = {.per_day = 12, .share = 1};
  run.shocks = {.per_day = 12, .share = 1};
  const Spread together = spread_of(play_scenarios(run, 1000).hours);
  const Spread one_by_one = spread_of(play_scenarios(apart, 1000).hours);
  EXPECT_GT(together.p90 - together.p10, one_by_one.p90 - one_by_one.p10);
  for (PlannedMachine& machine : run.machines) machine.spot = false;
  EXPECT_EQ(play_scenarios(run, 10).losses, 0);
}

}  // namespace
}  // namespace tw::plan
