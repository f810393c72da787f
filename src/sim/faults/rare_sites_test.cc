// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/rare_sites.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sim/scenarios/scenario_yaml.h"

namespace tw::sim {
namespace {

constexpr int kRuns = 4000;

TEST(RareSites, are_active_in_a_quarter_of_the_runs) {
  int active = 0;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    RareSites sites(seed);
    sites("lead.recall");
    active += sites.fired().contains("lead.recall") ? 1 : 0;
  }
  EXPECT_NEAR(0.25 * kRuns, active, 0.03 * kRuns);
}

TEST(RareSites, fire_in_a_quarter_of_the_cases_where_they_are_active) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RareSites sites(seed);
    int fired = 0;
    for (int i = 0; i < kRuns; ++i) fired += sites("lead.recall") ? 1 : 0;
    const auto counts = sites.fired();
    if (!counts.contains("lead.recall")) {
      EXPECT_EQ(0, fired) << "seed " << seed;
      continue;
    }
    EXPECT_EQ(counts.at("lead.recall"), fired);
    EXPECT_NEAR(0.25 * kRuns, fired, 0.04 * kRuns) << "seed " << seed;
  }
}

std::vector<bool> answers(std::uint64_t seed, const std::string& site, const std::string& other) {
  RareSites sites(seed);
  std::vector<bool> all;
  for (int i = 0; i < 64; ++i) {
    all.push_back(sites(site));
    if (!other.empty()) sites(other);
  }
  return all;
}

TEST(RareSites, answer_alike_for_the_same_seed_whoever_else_asks) {
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<bool> alone = answers(seed, "lead.recall", "");
    EXPECT_EQ(alone, answers(seed, "lead.recall", "fetch.timeout")) << "seed " << seed;
    differ += alone != answers(seed + 1000, "lead.recall", "") ? 1 : 0;
  }
  EXPECT_GT(differ, 20) << "the seed decides";
}

TEST(RareSites, are_active_independently_of_each_other) {
  int both = 0;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    RareSites sites(seed);
    sites("lead.recall");
    sites("lead.lease_one");
    both += sites.fired().size() == 2 ? 1 : 0;
  }
  EXPECT_NEAR(kRuns / 16.0, both, 0.02 * kRuns);
}

TEST(RareSites, are_all_taken_in_a_hundred_storms) {
  const auto storm = read_scenario(std::string(TW_SOURCE_DIR) + "/tests/scenarios/storm.yaml");
  ASSERT_TRUE(storm);
  std::set<std::string> taken;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const auto& [site, times] : run_scenario(storm.value(), seed).rare) {
      if (times > 0) taken.insert(site);
    }
  }
  const std::set<std::string> sites = {
      "donor.drop_image",    "donor.drop_mean",       "fetch.other_source",  "fetch.timeout",
      "lead.lease_again",    "lead.lease_one",        "lead.propose_again",  "lead.recall",
      "lead.resign_at_call", "lead.resign_at_commit", "lead.take_nobody_in", "reduction.result_first",
      "session.full_state",  "swarm.late_tick",       "swarm.late_vote",     "swarm.late_work",
      "swarm.redial",
  };
  EXPECT_EQ(sites, taken);
}

}  // namespace
}  // namespace tw::sim
