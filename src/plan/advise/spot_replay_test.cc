// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/spot_replay.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace tw::plan {
namespace {

constexpr double kHour = 3600;

AvailabilityTrace trace_of(std::vector<AvailabilityTrace::Change> changes) {
  return {.id = "made up", .changes = std::move(changes)};
}

constexpr std::string_view kPolicies[] = {"all on-demand", "greedy", "uniform progress", "live"};

Replay play(const DeadlineJob& job, const std::vector<AvailabilityTrace>& zones, double from_s,
            std::string_view name) {
  for (auto& policy : spot_policies())
    if (policy->name() == name) return replay(job, zones, from_s, *policy);
  ADD_FAILURE() << name;
  return {};
}

DeadlineJob job_of(double work_h, double deadline_h) {
  return {.work_s = work_h * kHour,
          .deadline_s = deadline_h * kHour,
          .change_over_s = 600,
          .machines = 1,
          .spot_usd_h = 1,
          .on_demand_usd_h = 3};
}

TEST(SpotReplay, without_spot_machines_all_policies_end_in_time_on_demand) {
  const AvailabilityTrace none = trace_of({{0, 0}, {100 * kHour, 0}});
  for (const std::string_view policy : kPolicies) {
    const Replay run = play(job_of(10, 12), {none}, 0, policy);
    EXPECT_FALSE(run.late) << policy;
    EXPECT_EQ(run.spot_h, 0) << policy;
    EXPECT_GE(run.on_demand_h, 10 + 1.0 / 6 - 1e-9) << policy;
  }
  EXPECT_NEAR(least_usd_in_hindsight(job_of(10, 12), {none}, 0), 3 * (10 + 1.0 / 6), 1e-9);
}

TEST(SpotReplay, with_spot_machines_all_the_time_only_all_on_demand_pays_more) {
  const AvailabilityTrace always = trace_of({{0, 1}, {100 * kHour, 1}});
  const double least = least_usd_in_hindsight(job_of(10, 12), {always}, 0);
  EXPECT_NEAR(least, 10 + 1.0 / 6, 1e-9);
  EXPECT_NEAR(play(job_of(10, 12), {always}, 0, "greedy").usd, least, 1e-9);
  EXPECT_NEAR(play(job_of(10, 12), {always}, 0, "uniform progress").usd, least, 1e-9);
  EXPECT_NEAR(play(job_of(10, 12), {always}, 0, "live").usd, least, 1e-9);
  EXPECT_NEAR(play(job_of(10, 12), {always}, 0, "all on-demand").usd, 3 * least, 1e-9);
}

TEST(SpotReplay, who_knows_the_future_waits_for_the_spot_machines_of_tomorrow) {
  const AvailabilityTrace later = trace_of({{0, 0}, {8 * kHour, 1}, {20 * kHour, 0}, {30 * kHour, 0}});
  EXPECT_NEAR(least_usd_in_hindsight(job_of(10, 20), {later}, 0), 10 + 1.0 / 6, 1e-9);
  EXPECT_GT(play(job_of(10, 20), {later}, 0, "uniform progress").on_demand_h, 1);
}

TEST(SpotReplay, an_interrupted_start_is_paid_and_does_no_work) {
  const AvailabilityTrace flicker = trace_of({{0, 1}, {300, 0}, {600, 1}, {900, 0}, {40 * kHour, 0}});
  const Replay run = play(job_of(10, 12), {flicker}, 0, "greedy");
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

TEST(SpotReplay, is_never_late_and_never_cheaper_than_the_optimum) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Prng random(seed);
    DeadlineJob job = job_of(4 + 8 * random.uniform(), 0);
    job.machines = seed % 3 == 0 ? 4 : 1;
    job.change_over_s = static_cast<double>(random.below(4)) * 250;
    job.deadline_s = job.work_s * (1.1 + random.uniform()) + job.change_over_s + 600;
    ASSERT_TRUE(feasible(job));
    const AvailabilityTrace trace = random_trace(random, job.machines, 40);
    const double least = least_usd_in_hindsight(job, {trace}, 0);
    for (const std::string_view policy : kPolicies) {
      const Replay run = play(job, {trace}, 0, policy);
      EXPECT_FALSE(run.late) << policy << " seed " << seed;
      EXPECT_LE(run.finished_s, job.deadline_s + 1e-6) << policy << " seed " << seed;
      EXPECT_GE(run.usd, least - 1e-9) << policy << " seed " << seed;
    }
  }
}

TEST(SpotReplay, stays_of_machines_add_up_to_hours_dollars_and_interruptions) {
  Prng random(9);
  for (int round = 0; round < 20; ++round) {
    std::vector<AvailabilityTrace> zones = {random_trace(random, 3, 60), random_trace(random, 3, 60)};
    DeadlineJob job = job_of(10, 20);
    job.machines = 2;
    job.move_usd = round % 2 == 0 ? 0.75 : 0;
    for (const std::string_view policy : kPolicies) {
      const Replay run = play(job, zones, 0, policy);
      double usd = 0, spot_h = 0, on_demand_h = 0;
      int taken = 0, starts = 0;
      for (const Stay& stay : run.stays) {
        EXPECT_LT(stay.from_s, stay.to_s) << policy;
        EXPECT_LE(stay.to_s, run.finished_s) << policy;
        usd += stay.usd;
        (stay.mode == Mode::spot ? spot_h : on_demand_h) += (stay.to_s - stay.from_s) / kHour;
        taken += stay.taken ? 1 : 0;
        starts += stay.mode == Mode::spot ? 1 : 0;
      }
      EXPECT_NEAR(usd, run.usd, 1e-9) << policy;
      EXPECT_NEAR(spot_h, run.spot_h, 0.2) << policy << ": one is idle in the job's last tick";
      EXPECT_NEAR(on_demand_h, run.on_demand_h, 0.2) << policy;
      EXPECT_EQ(taken, run.interruptions) << policy;
      EXPECT_EQ(starts, run.moves) << policy;
    }
  }
}

TEST(SpotReplay, with_several_zones_no_policy_is_late_or_cheaper_than_the_optimum) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Prng random(seed);
    DeadlineJob job = job_of(4 + 8 * random.uniform(), 0);
    job.machines = seed % 3 == 0 ? 3 : 1;
    job.move_usd = seed % 2 == 0 ? 1.5 : 0;
    job.deadline_s = job.work_s * (1.1 + random.uniform()) + job.change_over_s + 600;
    std::vector<AvailabilityTrace> zones;
    for (int zone = 0; zone < 3; ++zone) zones.push_back(random_trace(random, job.machines, 60));
    for (AvailabilityTrace& zone : zones)
      for (AvailabilityTrace::Change& change : zone.changes) change.spot_usd_h = 0.5 + 2 * random.uniform();
    const double from_s = 20 * kHour * random.uniform();
    const double least = least_usd_in_hindsight(job, zones, from_s);
    EXPECT_LE(least, least_usd_in_hindsight(job, {zones[1]}, from_s) + 1e-9) << "seed " << seed;
    for (const std::string_view policy : kPolicies) {
      const Replay run = play(job, zones, from_s, policy);
      EXPECT_FALSE(run.late) << policy << " seed " << seed;
      EXPECT_GE(run.usd, least - 1e-9) << policy << " seed " << seed;
    }
  }
}

TEST(SpotReplay, a_lost_machine_goes_on_in_another_zone) {
  const AvailabilityTrace first = trace_of({{0, 1}, {4 * kHour, 0}, {100 * kHour, 0}});
  const AvailabilityTrace second = trace_of({{0, 0}, {3 * kHour, 1}, {100 * kHour, 1}});
  DeadlineJob job = job_of(10, 14);
  const Replay run = play(job, {first, second}, 0, "live");
  EXPECT_EQ(run.interruptions, 1);
  EXPECT_EQ(run.moves, 2);
  EXPECT_EQ(run.on_demand_h, 0);
  EXPECT_NEAR(run.usd, 10 + 2.0 / 6, 1e-9);
  job.move_usd = 2;
  EXPECT_NEAR(play(job, {first, second}, 0, "live").usd, run.usd + 2, 1e-9);
  job.move_usd = 100;
  const Replay dear = play(job, {first, second}, 0, "live");
  EXPECT_EQ(dear.moves, 1) << "on-demand costs less than to send the state";
  EXPECT_GT(dear.on_demand_h, 5);
}

/// Says at each decision what it wants, not what is to change.
class Repeating : public SpotPolicy {
 public:
  explicit Repeating(SpotAction action) : action_(action) {}

  std::string_view name() const override { return "repeating"; }

  SpotDecision decide(const SpotView&) override { return {.action = action_, .zone = 0}; }

 private:
  SpotAction action_;
};

TEST(SpotReplay, a_policy_that_says_again_where_its_machine_is_pays_for_one_change_over) {
  const AvailabilityTrace always = trace_of({{0, 1}, {100 * kHour, 1}});
  Repeating spot(SpotAction::move), on_demand(SpotAction::on_demand);
  const Replay stays = replay(job_of(10, 12), {always}, 0, spot);
  EXPECT_EQ(stays.moves, 1);
  EXPECT_NEAR(stays.usd, 10 + 1.0 / 6, 1e-9);
  EXPECT_NEAR(replay(job_of(10, 12), {always}, 0, on_demand).usd, 3 * (10 + 1.0 / 6), 1e-9);
}

TEST(SpotReplay, the_optimum_pays_for_its_moves) {
  const AvailabilityTrace first = trace_of({{0, 1}, {4 * kHour, 0}, {100 * kHour, 0}});
  const AvailabilityTrace second = trace_of({{0, 0}, {3 * kHour, 1}, {100 * kHour, 1}});
  DeadlineJob job = job_of(10, 11);
  const auto least = [&](const std::vector<AvailabilityTrace>& zones) {
    return least_usd_in_hindsight(job, zones, 0);
  };
  const double free = least({first, second});
  EXPECT_NEAR(free, 10 + 2.0 / 6, 1e-9);
  job.move_usd = 0.5;
  EXPECT_NEAR(least({first, second}), free + 0.5, 1e-9);
  job.move_usd = 100;
  EXPECT_NEAR(least({first, second}), std::min(least({first}), least({second})), 1e-9) << "it stays";
}

TEST(SpotReplay, live_moves_to_a_zone_that_has_become_much_cheaper) {
  AvailabilityTrace first = trace_of({{0, 1}, {40 * kHour, 1}, {100 * kHour, 1}});
  AvailabilityTrace second = first;
  for (AvailabilityTrace::Change& change : first.changes)
    change.spot_usd_h = change.at_s < 40 * kHour ? 1 : 2.5;
  for (AvailabilityTrace::Change& change : second.changes) change.spot_usd_h = 1.5;
  const Replay run = play(job_of(20, 30), {first, second}, 30 * kHour, "live");
  EXPECT_EQ(run.moves, 2);
  EXPECT_LT(run.usd, 10 + 11 * 1.5);
}

TEST(SpotReplay, zones_of_a_market_are_seen_at_the_same_time) {
  const AvailabilityTrace early = trace_of({{0, 1}, {5 * kHour, 0}, {100 * kHour, 0}});
  const AvailabilityTrace late = trace_of({{5 * kHour, 1}, {90 * kHour, 1}});
  EXPECT_EQ(CoveredTime({early, late}).begin_s, 5 * kHour);
  EXPECT_EQ(CoveredTime({early, late}).length_s, 85 * kHour);
  const SampledZones zones({early, late}, 0, kHour, 2, 1);
  EXPECT_EQ(zones.available, (std::vector<std::vector<int>>{{0, 1}, {0, 1}}));
}

TEST(SpotReplay, live_moves_to_a_cheaper_zone_unless_the_state_costs_more_to_send_than_that_saves) {
  AvailabilityTrace dear = trace_of({{0, 1}, {50 * kHour, 1}, {100 * kHour, 1}});
  dear.id = "dear";
  for (AvailabilityTrace::Change& change : dear.changes) change.spot_usd_h = 0.5;
  dear.changes[1].spot_usd_h = 2;
  AvailabilityTrace cheap = trace_of({{0, 1}, {100 * kHour, 1}});
  cheap.id = "cheap";
  for (AvailabilityTrace::Change& change : cheap.changes) change.spot_usd_h = 1;
  DeadlineJob job = job_of(20, 40);
  const Replay free = play(job, {dear, cheap}, 40 * kHour, "live");
  EXPECT_EQ(free.moves, 2) << "begins where it is cheap, and leaves when the price rises";
  job.move_usd = 1;
  const Replay priced = play(job, {dear, cheap}, 40 * kHour, "live");
  EXPECT_EQ(priced.moves, 2);
  EXPECT_NEAR(priced.usd, free.usd + 1, 1e-9);
  job.move_usd = 8;
  EXPECT_EQ(play(job, {dear, cheap}, 40 * kHour, "live").moves, 1);
}

TEST(SpotReplay, a_change_over_of_a_second_has_ticks_of_a_minute) {
  DeadlineJob job = job_of(10, 12);
  job.change_over_s = 1;
  EXPECT_EQ(ticks_of(job).tick_s, 60);
  EXPECT_EQ(ticks_of(job).change_over, 1);
}

TEST(SpotReplay, a_deadline_shorter_than_work_and_change_over_cannot_be_kept) {
  EXPECT_TRUE(feasible(job_of(10, 10.2)));
  EXPECT_FALSE(feasible(job_of(10, 10.1)));
}

TEST(Availability, the_least_number_of_a_tick_counts) {
  const AvailabilityTrace trace = trace_of({{100, 3}, {150, 1}, {160, 4}, {400, 2}, {500, 2}});
  EXPECT_EQ(sample_availability(trace, 0, 100, 5), (std::vector<int>{1, 4, 4, 2, 0}));
  EXPECT_EQ(sample_availability(trace, 60, 100, 2), (std::vector<int>{4, 4}));
}

TEST(Availability, prices_hold_until_the_next_change) {
  AvailabilityTrace trace = trace_of({{100, 1}, {300, 1}, {500, 1}});
  trace.changes[1].spot_usd_h = 0.7;
  EXPECT_EQ(sample_prices(trace, 0, 100, 4, 0.3), (std::vector<double>{0.3, 0.3, 0.7, 0.7}));
}

TEST(Availability, a_file_without_names_is_one_trace) {
  const auto traces = read_availability("spot.csv", "t_seconds,available\n0,1\n60,2\n");
  ASSERT_TRUE(traces.ok()) << traces.error().message;
  ASSERT_EQ(traces.value().size(), 1U);
  EXPECT_EQ(traces.value().front().id, "spot.csv");
  EXPECT_EQ(traces.value().front().most(), 2);
}

TEST(Availability, traces_may_take_turns_in_a_file) {
  const auto traces =
      read_availability("t.csv", "trace_id,t_seconds,available\na,0,1\nb,0,2\na,5,3\nb,5,4\n");
  ASSERT_TRUE(traces.ok()) << traces.error().message;
  ASSERT_EQ(traces.value().size(), 2U);
  EXPECT_EQ(traces.value()[0].most(), 3);
  EXPECT_EQ(traces.value()[1].most(), 4);
}

TEST(Availability, a_file_without_rows_is_named) {
  EXPECT_EQ(read_availability("empty.csv", "t_seconds,available\n").error().message,
            "empty.csv: no rows; expected t_seconds,available and what follows");
}

TEST(Availability, a_malformed_row_is_named) {
  const auto traces = read_availability("t.csv", "trace_id,t_seconds,available\na,0,1\na,5,many\n");
  ASSERT_FALSE(traces.ok());
  EXPECT_NE(traces.error().message.find("t.csv:3"), std::string::npos) << traces.error().message;
  EXPECT_NE(traces.error().message.find("many"), std::string::npos) << traces.error().message;
  EXPECT_FALSE(read_availability("t.csv", "trace_id,t_seconds,available\na,5,1\na,5,2\n").ok());
}

TEST(Availability, an_unknown_column_and_an_empty_price_are_refused) {
  EXPECT_EQ(read_availability("t.csv", "t_seconds,available,spot_usd_hour\n0,1,9\n").error().message,
            "t.csv: unknown column spot_usd_hour; did you mean \"spot_usd_h\"?");
  EXPECT_EQ(read_availability("t.csv", "t_seconds,available,note\n0,1,x\n").error().message,
            "t.csv: unknown column note; known here: trace_id, t_seconds, available, spot_usd_h");
  const std::string expected =
      "expected a price above 0 where machines are available, unless the row is the last of its trace; or no "
      "such column";
  EXPECT_EQ(
      read_availability("t.csv", "t_seconds,available,spot_usd_h\n0,1,9\n5,1,\n9,1,9\n").error().message,
      "t.csv:3: spot_usd_h is empty: " + expected);
  EXPECT_EQ(read_availability("t.csv", "t_seconds,available,spot_usd_h\n0,1,0\n").error().message,
            "t.csv:2: spot_usd_h 0: " + expected);
  EXPECT_TRUE(read_availability("t.csv", "t_seconds,available,spot_usd_h\n0,1,9\n5,1,8\n").ok());
}

TEST(Availability, a_row_without_machines_and_the_last_one_need_no_price) {
  const auto read =
      read_availability("t.csv", "t_seconds,available,spot_usd_h\n0,0,\n5,1,0.4\n7,0,\n8,1,0.6\n9,1,\n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::vector<double> prices;
  for (const AvailabilityTrace::Change& change : read.value().front().changes)
    prices.push_back(change.spot_usd_h);
  EXPECT_EQ(prices, (std::vector<double>{0, 0.4, 0.4, 0.6, 0.6}));
}

}  // namespace
}  // namespace tw::plan
