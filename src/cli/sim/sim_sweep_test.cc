// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>

#include "cli/sim/sim_trace.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/test_logs.h"

namespace tw::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Seed 7 violates I4, and kills in gather.
sim::SimReport run_of(std::uint64_t seed) {
  sim::SimReport report;
  report.seed = seed;
  report.history = digest_of(std::to_string(seed));
  report.events = 1000;
  report.simulated = std::chrono::seconds(2);
  report.faults[sim::FaultKind::kill] = {.drawn = 2, .fired = 1};
  report.rare["lead.early"] = 3;
  if (seed == 7) {
    report.violations = {{"I4", "another mean"}};
    report.kills_by_phase[world::Phase::gather] = 1;
    report.leader_kills = 1;
  }
  return report;
}

SweepResult sweep_all(const SweepOptions& options, const RunSeed& run = run_of) {
  return sweep(options, run, [](const SweepResult&) { return true; });
}

sim::Scenario two_faults() {
  sim::Scenario scenario;
  scenario.name = "small";
  scenario.faults = {{.kind = sim::FaultKind::kill, .chance = 1},
                     {.kind = sim::FaultKind::reset, .chance = 1}};
  return scenario;
}

TEST(Sweep, runs_every_seed_twice_and_adds_up_what_they_came_to) {
  for (const int jobs : {1, 3, 64}) {
    std::mutex mutex;
    std::map<std::uint64_t, int> runs;
    const SweepResult tally =
        sweep_all({.file = "a.yaml", .seeds = {5, 14}, .jobs = jobs}, [&](std::uint64_t seed) {
          const std::lock_guard lock(mutex);
          ++runs[seed];
          return run_of(seed);
        });
    EXPECT_EQ(runs.size(), 10U);
    for (const auto& [seed, count] : runs) EXPECT_EQ(count, 2) << seed;
    EXPECT_EQ(tally.seeds, 10U);
    EXPECT_EQ(tally.events, 10'000U);
    EXPECT_EQ(tally.all_events, 20'000U);
    EXPECT_EQ(tally.simulated, std::chrono::seconds(20));
    EXPECT_EQ(tally.faults.at(sim::FaultKind::kill).drawn, 20);
    EXPECT_EQ(tally.faults.at(sim::FaultKind::kill).fired, 10);
    EXPECT_EQ(tally.rare.at("lead.early"), 30);
    EXPECT_EQ(tally.leader_kills, 1);
    ASSERT_EQ(tally.failed.size(), 1U);
    EXPECT_EQ(tally.failed[0].seed, 7U);
  }
}

TEST(Sweep, runs_every_seed_once_when_told_so) {
  std::atomic<int> runs = 0;
  const SweepResult tally =
      sweep_all({.file = "a.yaml", .seeds = {1, 4}, .twice = false}, [&](std::uint64_t seed) {
        ++runs;
        return run_of(seed);
      });
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(tally.all_events, 4000U);
}

TEST(Sweep, reports_a_seed_whose_second_run_has_another_history) {
  std::set<std::uint64_t> seen;
  const SweepResult tally = sweep_all({.file = "a.yaml", .seeds = {1, 5}}, [&](std::uint64_t seed) {
    sim::SimReport report = run_of(seed);
    if (!seen.insert(seed).second && seed == 3) report.history = digest_of("another");
    return report;
  });
  ASSERT_EQ(tally.failed.size(), 1U);
  EXPECT_EQ(tally.failed[0].seed, 3U);
  EXPECT_EQ(tally.failed[0].violations.at(0).checker, "replay");
}

TEST(Sweep, lists_failures_by_seed_whatever_the_order_in_which_they_end) {
  const SweepResult tally =
      sweep_all({.file = "a.yaml", .seeds = {1, 200}, .jobs = 4}, [](std::uint64_t seed) {
        sim::SimReport report = run_of(seed);
        report.violations = {{"I1", "always"}};
        return report;
      });
  ASSERT_EQ(tally.failed.size(), 200U);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(tally.failed[i].seed, i + 1);
}

TEST(Sweep, ends_with_the_seeds_under_way_when_it_is_stopped) {
  const SweepOptions options{.file = "a.yaml", .seeds = {1, UINT64_MAX}, .jobs = 2};
  const SweepResult tally = sweep(options, run_of, [](const SweepResult&) { return false; });
  EXPECT_GT(tally.seeds, 0U);
  const std::string text = render(options, two_faults(), tally, std::chrono::seconds(1));
  EXPECT_THAT(text, HasSubstr(" of 1..18446744073709551615, each run twice"));
}

TEST(SweepDeathTest, says_which_seed_broke_an_assertion) {
  EXPECT_DEATH(sweep_all({.file = "a.yaml", .seeds = {1, 9}},
                         [](std::uint64_t seed) {
                           TW_CHECK(seed != 4);
                           return run_of(seed);
                         }),
               "broken invariant: seed != 4\n.*again: tw sim a.yaml --seed 4 --trace\n");
}

TEST(SweepText, tells_totals_and_what_never_fired) {
  const SweepOptions options{.file = "a.yaml", .seeds = {1, 10}, .jobs = 2};
  const std::string text = render(options, two_faults(), sweep_all(options), std::chrono::seconds(2));
  EXPECT_THAT(text, HasSubstr("scenario       small (a.yaml)\n"
                              "seeds          1..10, each run twice\n"
                              "failed         1 seeds\n"
                              "events         10000 (10000/s, 5000/s a job)\n"
                              "simulated      20 s in 2 s\n"
                              "kills          in gather 1; of leaders 1\n"
                              "faults         1 of the 2 kinds of the scenario fired\n"));
  EXPECT_THAT(text, HasSubstr("  reset                       0 drawn        0 fired   never\n"));
  EXPECT_THAT(text, HasSubstr("  kill                       20 drawn       10 fired\n"));
  EXPECT_THAT(text, HasSubstr("  lead.early                                30 times\n"));
}

TEST(SweepText, shows_a_failure_with_the_command_that_shows_it_again) {
  const SweepResult tally = sweep_all({.file = "a.yaml", .seeds = {1, 10}});
  const std::string text = render_failures("a.yaml", tally.failed);
  EXPECT_THAT(text, HasSubstr("I4: another mean"));
  EXPECT_THAT(text, HasSubstr("again: tw sim a.yaml --seed 7 --trace\n"));
  std::vector<sim::SimReport> many(30, run_of(7));
  EXPECT_THAT(render_failures("a.yaml", many), HasSubstr("... and 20 more seeds"));
}

TEST(SweepText, tells_progress) {
  SweepResult tally;
  EXPECT_EQ(progress_words("small", {1, 100}, tally, std::chrono::seconds(1)),
            "small: 0 of 100 seeds, 0 failed, 0 events/s");
  tally.seeds = 25;
  tally.all_events = 50'000;
  EXPECT_EQ(progress_words("small", {1, 100}, tally, std::chrono::seconds(30)),
            "small: 25 of 100 seeds, 0 failed, 1667 events/s");
}

TEST(SweepResults, have_a_failure_for_each_violation_and_a_row_for_each_fault_of_the_menu) {
  const monitor::SimResults results =
      results_of(two_faults(), sweep_all({.file = "a.yaml", .seeds = {1, 10}}), std::chrono::seconds(4));
  EXPECT_EQ(results.seeds, 10U);
  EXPECT_EQ(results.events, 10'000U);
  EXPECT_EQ(results.events_per_s, 5000);
  EXPECT_EQ(results.simulated_s, 20);
  ASSERT_EQ(results.failures.size(), 1U);
  EXPECT_EQ(results.failures[0].checker, "I4");
  ASSERT_EQ(results.faults.size(), 2U);
  EXPECT_EQ(results.faults[0].name, "reset");
  EXPECT_EQ(results.faults[0].fired, 0);
  EXPECT_EQ(results.faults[1].fired, 10);
  EXPECT_EQ(results.kills_by_phase.at(0), (std::pair<std::string, int>("gather", 1)));
}

TEST(TraceLogs, are_read_as_those_of_a_real_run) {
  const std::string folder = testing::TempDir() + "tw-trace-logs";
  std::filesystem::create_directories(folder);
  TraceLogs logs(folder, {{.name = "us", .usd_per_h = 3.6}, {.name = "eu"}});
  const world::Event event{.at = Instant(std::chrono::seconds(1002)), .round = 3, .fact = event::Commit{}};
  logs.write(PeerId{1}, event);
  logs.write(PeerId{2}, event);
  logs.write(PeerId{1}, event);
  logs.write(PeerId{1}, {.fact = event::Start{.site = "us"}});
  logs.write(PeerId{2}, {.fact = event::Start{.site = "eu"}});
  EXPECT_TRUE(logs.finish());
  const auto read = monitor::read_event_logs(folder);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read.value().size(), 2U);
  ASSERT_EQ(read.value()[0].size(), 3U);
  EXPECT_EQ(read.value()[0][2].event.as<event::Start>()->usd_per_h, 3.6) << "that of its site";
  EXPECT_EQ(read.value()[1][1].event.as<event::Start>()->usd_per_h, std::nullopt);
  EXPECT_EQ(read.value()[0][1].writer, PeerId{1});
  EXPECT_EQ(read.value()[0][1].event.round, 3U);
  EXPECT_EQ(read.value()[0][1].unix_nanos, 1'002'000'000'000);
  std::filesystem::remove_all(folder);
  logs.write(PeerId{3}, event);
  EXPECT_FALSE(logs.finish());
}

}  // namespace
}  // namespace tw::cli
