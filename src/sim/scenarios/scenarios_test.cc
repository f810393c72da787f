// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/scenarios/scenario_yaml.h"

namespace tw::sim {
namespace {

Scenario scenario_of(const std::string& name) {
  const Result<Scenario> scenario =
      read_scenario(std::string(TW_SOURCE_DIR) + "/tests/scenarios/" + name + ".yaml");
  EXPECT_TRUE(scenario) << scenario.error().message;
  return scenario ? scenario.value() : Scenario{};
}

/// Runs these seeds; returns how often each kind of fault did something.
std::map<FaultKind, int> expect_clean(const Scenario& scenario, std::uint64_t first, std::uint64_t count) {
  std::map<FaultKind, int> fired;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const SimReport report = run_scenario(scenario, seed);
    EXPECT_TRUE(report.violations.empty()) << to_string(report) << "\n  again: tw sim tests/scenarios/"
                                           << scenario.name << ".yaml --seed " << seed << " --trace";
    for (const auto& [kind, faults] : report.faults) fired[kind] += faults.fired;
  }
  return fired;
}

// The seeds before these: tests/histories, which judges them, too.
constexpr std::uint64_t kFirstSeed = 41;
constexpr std::uint64_t kFirstStorm = 801;

constexpr std::uint64_t kStormShards = 8;
constexpr std::uint64_t kSeedsOfShard = 150;

/// 1,200 seeds in parts, so that several cores can share them.
class StormScenario : public testing::TestWithParam<std::uint64_t> {};

TEST_P(StormScenario, breaks_no_law_while_every_fault_of_the_menu_fires) {
  const Scenario scenario = scenario_of("storm");
  auto fired = expect_clean(scenario, kFirstStorm + GetParam() * kSeedsOfShard, kSeedsOfShard);
  for (const FaultSpec& spec : scenario.faults)
    EXPECT_GT(fired[spec.kind], 0) << name_of(spec.kind) << " never fired";
}

INSTANTIATE_TEST_SUITE_P(Shard, StormScenario, testing::Range<std::uint64_t>(0, kStormShards));

class EveryScenario : public testing::TestWithParam<const char*> {};

TEST_P(EveryScenario, violates_nothing_while_its_faults_fire) {
  constexpr std::uint64_t kSeeds = 60, kMore = 20, kMostSeeds = 400;
  const Scenario scenario = scenario_of(GetParam());
  std::map<FaultKind, int> fired = expect_clean(scenario, kFirstSeed, kSeeds);
  const auto lacks = [&](const FaultSpec& spec) { return fired[spec.kind] == 0; };
  // A rare fault needs more seeds.
  for (std::uint64_t seed = kFirstSeed + kSeeds;
       seed < kMostSeeds && std::ranges::any_of(scenario.faults, lacks); seed += kMore)
    for (const auto& [kind, count] : expect_clean(scenario, seed, kMore)) fired[kind] += count;
  for (const FaultSpec& spec : scenario.faults)
    EXPECT_GT(fired[spec.kind], 0) << name_of(spec.kind) << " never fired";
}

std::string file_name(const testing::TestParamInfo<const char*>& row) { return row.param; }

INSTANTIATE_TEST_SUITE_P(Files, EveryScenario,
                         testing::Values("anchors", "batches", "bulk", "busy", "copies", "data", "delayed",
                                         "disks", "early_ends", "endings", "forgers", "gone", "hostile",
                                         "jumps", "kills", "local", "long_rounds", "long_vectors",
                                         "loss_of_all", "lost_majority", "partitions", "pauses",
                                         "rare_digests", "relaunch", "relaunch_few", "sites", "slow_updates",
                                         "spot", "streaming", "thin_lines", "uneven"),
                         file_name);

/// Runs beyond those above that have shown a fault of the protocol, or of a law (tests/histories/found.md).
TEST(Corpus, of_seeds_that_once_broke_a_law_breaks_none) {
  const std::map<std::string, std::vector<std::uint64_t>> seeds = {
      {"storm",
       {2320, 2486, 2713, 3433, 3513, 3515, 3902, 5041, 5589, 608100471, 982423970372, 982423973846}},
      {"busy", {97}},
      {"forgers", {639388237173}},
      {"kills", {256}},
      {"long_rounds", {998996828197, 998996828267}},
      {"lost_majority", {166, 300181, 644391144780, 644391145339}},
      {"partitions", {252, 398}},
      {"relaunch_few", {133, 348, 2026112500261}},
      {"sites", {306741409012}},
      {"slow_updates", {561, 3629, 5006}},
      {"thin_lines", {124}},
  };
  for (const auto& [name, of_it] : seeds) {
    for (const std::uint64_t seed : of_it) expect_clean(scenario_of(name), seed, 1);
  }
}

/// Faults choose the leader often, so that both anchors may be dead: only rounds that one of them lives
/// through count.
TEST(Anchors, lead_most_rounds_in_a_crowd_that_comes_and_goes) {
  const Scenario scenario = scenario_of("anchors");
  int anchors = 0, others = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::set<Round> led_by_others, anchored;
    Watching watching;
    watching.on_event = [&](PeerId peer, const world::Event& event) {
      const bool is_anchor = peer.value % 10000 < 2;
      if (event.phase() == world::Phase::commit && is_anchor) anchored.insert(event.round);
      if (event.phase() == world::Phase::lead && !is_anchor) led_by_others.insert(event.round);
    };
    (void)run_scenario(scenario, seed, watching);
    for (const Round round : anchored) ++(led_by_others.contains(round) ? others : anchors);
  }
  EXPECT_GT(anchors, 10 * others) << anchors << " and " << others;
}

TEST(LostMajority, makes_some_peers_go_on_alone_and_others_never_do) {
  int marked = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    marked += run_scenario(scenario_of("lost_majority"), seed).minority_records > 0 ? 1 : 0;
    EXPECT_EQ(run_scenario(scenario_of("kills"), seed).minority_records, 0) << "seed " << seed;
  }
  EXPECT_GE(marked, 5);
}

}  // namespace
}  // namespace tw::sim
