// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "sim/scenarios/scenario.h"
#include "sim/virtual/events.h"

namespace tw::sim {
namespace {

FaultSpec often(FaultKind kind) { return {.kind = kind, .chance = 1, .least = 1, .most = 4}; }

Scenario with(std::vector<FaultSpec> faults) {
  Scenario scenario;
  scenario.faults = std::move(faults);
  return scenario;
}

TEST(ScenarioRun, kills_in_every_phase_of_a_round_and_kills_leaders) {
  const Scenario scenario = with({often(FaultKind::kill), often(FaultKind::join)});
  std::map<world::Phase, int> kills;
  int leaders = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const SimReport report = run_scenario(scenario, seed);
    for (const auto& [phase, count] : report.kills_by_phase) kills[phase] += count;
    leaders += report.leader_kills;
  }
  for (const world::Phase phase : {world::Phase::accumulate, world::Phase::call, world::Phase::scatter,
                                   world::Phase::gather, world::Phase::commit}) {
    EXPECT_GE(kills[phase], 5) << static_cast<int>(phase);
  }
  EXPECT_GE(leaders, 30);
}

TEST(ScenarioRun, goes_on_alone_after_the_patience_when_a_majority_is_lost_for_good) {
  Scenario scenario = with({often(FaultKind::kill), often(FaultKind::zone_loss)});
  scenario.keep_majority = false;
  scenario.patience_s = 5;
  int marked = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const SimReport report = run_scenario(scenario, seed);
    EXPECT_TRUE(report.violations.empty()) << to_string(report);
    marked += report.minority_records > 0 ? 1 : 0;
  }
  EXPECT_GE(marked, 5);
}

TEST(ScenarioRun, gives_the_slowest_peer_time_for_the_whole_run_only_where_it_may_be_left_alone) {
  Scenario scenario = with({});
  scenario.sites = {{.name = "slow", .peers = 1, .samples_per_s = 10}};
  scenario.workload.microbatch = 4;
  scenario.workload.microbatches = 8;
  scenario.times.span_s = 1;
  scenario.calm_limit_s = 30;  // 16 rounds take 51 s
  for (const bool keeps : {true, false}) {
    scenario.keep_majority = keeps;
    const SimReport report = run_scenario(scenario, 1);
    EXPECT_EQ(report.violations.empty(), !keeps) << to_string(report);
  }
}

TEST(ScenarioRun, tells_what_was_drawn_and_how_often_each_fault_had_an_effect) {
  const SimReport report = run_scenario(with({often(FaultKind::join)}), 7);
  EXPECT_GE(report.faults.at(FaultKind::join).drawn, 1);
  EXPECT_GE(report.faults.at(FaultKind::join).fired, 1);
  EXPECT_NE(to_string(report).find("join of"), std::string::npos) << to_string(report);
}

TEST(ScenarioRun, passes_on_the_event_logs_of_all_peers) {
  std::map<PeerId, int> commits;
  const Watching watching{.on_event = [&](PeerId peer, const world::Event& event) {
    commits[peer] += event.phase() == world::Phase::commit ? 1 : 0;
  }};
  const SimReport report = run_scenario(with({}), 3, watching);
  EXPECT_EQ(commits.size(), 8U);
  for (const auto& [peer, count] : commits) EXPECT_GE(count, 1) << peer.value;
}

/// The state of a better history may be told of by a record alone, whose deciders are out of reach.
TEST(ScenarioRun, no_peer_takes_the_state_that_it_has_again_and_again) {
  Scenario scenario = with({often(FaultKind::partition), often(FaultKind::one_way),
                            often(FaultKind::black_hole), often(FaultKind::clog), often(FaultKind::reset)});
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::map<std::pair<PeerId, Round>, std::vector<Instant>> taken;
    const Watching watching{.on_event = [&](PeerId peer, const world::Event& event) {
      const auto* restored = event.as<event::Restore>();
      if (restored && !restored->digest.empty()) taken[{peer, event.round}].push_back(event.at);
    }};
    (void)run_scenario(scenario, seed, watching);
    for (const auto& [what, times] : taken) {
      for (std::size_t i = 2; i < times.size(); ++i) {
        EXPECT_GT(times[i] - times[i - 2], std::chrono::seconds(1))
            << "peer " << what.first.value << ", round " << what.second << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace tw::sim
