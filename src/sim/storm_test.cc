// SPDX-License-Identifier: Apache-2.0
#include "sim/storm.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/events.h"

namespace tw::v1 {
namespace {

constexpr std::uint64_t kSeedsOfShard = 50;
constexpr std::uint64_t kShards = 10;

/// A tenth of the seeds each, so that several cores can share them.
class StormOfSeeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(StormOfSeeds, keeps_every_invariant_while_all_kinds_of_faults_strike) {
  std::map<FaultKind, int> faults;
  for (std::uint64_t seed = GetParam() * kSeedsOfShard; seed < (GetParam() + 1) * kSeedsOfShard; ++seed) {
    const SimReport report = run_storm(seed, {});
    EXPECT_TRUE(report.violations.empty()) << to_string(report);
    EXPECT_EQ(report.minority_records, 0) << to_string(report);
    for (const auto& [kind, count] : report.faults) faults[kind] += count;
  }
  EXPECT_EQ(faults.size(), 7U);
}

INSTANTIATE_TEST_SUITE_P(Shard, StormOfSeeds, testing::Range<std::uint64_t>(0, kShards));

TEST(Storm, is_the_same_history_for_the_same_seed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SimReport first = run_storm(seed, {}), second = run_storm(seed, {});
    EXPECT_EQ(first.history, second.history) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
  EXPECT_NE(run_storm(1, {}).history, run_storm(2, {}).history);
}

TEST(Storm, kills_in_every_phase_of_a_round_and_kills_leaders) {
  std::map<Phase, int> kills;
  int leaders = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const SimReport report = run_storm(seed, {});
    for (const auto& [phase, count] : report.kills_by_phase) kills[phase] += count;
    leaders += report.leader_kills;
  }
  for (const Phase phase : {Phase::accumulate, Phase::call, Phase::scatter, Phase::gather, Phase::commit}) {
    EXPECT_GE(kills[phase], 5) << phase_word(phase);
  }
  EXPECT_GE(leaders, 50);
}

TEST(Storm, is_seen_by_I4_when_sealed_segments_stay_although_their_contributors_changed) {
  StormOptions options;
  options.keep_stale_seals = true;
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const Violation& violation : run_storm(seed, options).violations)
      seen += violation.checker == "I4" ? 1 : 0;
  }
  EXPECT_GE(seen, 5);
}

TEST(Storm, goes_on_alone_after_the_patience_when_a_majority_is_lost_for_good) {
  StormOptions options;
  options.keep_majority = false;
  options.patience = std::chrono::seconds(5);
  int marked = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const SimReport report = run_storm(seed, options);
    EXPECT_TRUE(report.violations.empty()) << to_string(report);
    marked += report.minority_records > 0 ? 1 : 0;
  }
  EXPECT_GE(marked, 5);
}

}  // namespace
}  // namespace tw::v1
