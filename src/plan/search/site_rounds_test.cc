// SPDX-License-Identifier: Apache-2.0
#include "plan/search/site_rounds.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "plan/model/cost.h"

namespace tw::plan {
namespace {

std::vector<PeerGroup> six_sites() {
  return parse_peers(
             "1xT4@gcp:us-west1:us-west1-a;1xT4@gcp:us-west1:us-west1-b;1xT4@gcp:europe-west1;"
             "1xT4@aws:us-east-1;1xA10@lambda:us-west;1xRTX8000@onprem:eu")
      .value();
}

SiteRounds rounds_of(Pattern pattern) {
  return SiteRounds({.model = Models::built_in().find("CONV").value(), .pattern = pattern}, six_sites(),
                    market::NetworkProfile::built_in(), market::Tariffs::built_in());
}

/// Some peers are fixed; the others come to open sites, new ones as promised by the plan, or any.
struct Draw {
  PartialPlan partial{std::vector<int>(6), std::vector<bool>(6), 0, 0};
  std::vector<int> whole = std::vector<int>(6);
};

Draw draw(Prng& random) {
  Draw one;
  std::vector<int> added(6);
  for (std::size_t site = 0; site < 6; ++site) {
    one.partial.peers[site] = random.chance(0.4) ? 1 + static_cast<int>(random.below(6)) : 0;
    one.partial.open[site] = random.chance(0.6);
    if (one.partial.open[site] && random.chance(0.6)) added[site] = 1 + static_cast<int>(random.below(6));
    one.whole[site] = one.partial.peers[site] + added[site];
    one.partial.more += added[site];
    one.partial.most_each = std::max(one.partial.most_each, added[site]);
    one.partial.apart += added[site] > 0 && one.partial.peers[site] == 0 ? 1 : 0;
  }
  return one;
}

TEST(SiteRounds, no_completion_of_a_partial_plan_takes_or_costs_less_than_was_said) {
  for (Pattern pattern : {Pattern::tradewind, Pattern::tradewind_sites, Pattern::hivemind, Pattern::ring,
                          Pattern::parameter_server}) {
    SiteRounds rounds = rounds_of(pattern);
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      Prng random(seed);
      const Draw one = draw(random);
      if (one.whole == std::vector<int>(6)) continue;
      const Averaging whole = rounds.of(one.whole);
      const Averaging least = rounds.least(one.partial);
      EXPECT_LE(least.calc_s, whole.calc_s) << to_string(pattern) << " seed " << seed;
      EXPECT_LE(least.seconds, whole.seconds * (1 + 1e-9)) << to_string(pattern) << " seed " << seed;
      EXPECT_LE(least.usd, whole.usd * (1 + 1e-9)) << to_string(pattern) << " seed " << seed;
    }
  }
}

TEST(SiteRounds, of_a_whole_plan_the_least_is_what_it_takes) {
  SiteRounds rounds = rounds_of(Pattern::tradewind);
  const PartialPlan whole{{3, 0, 2, 1, 0, 1}, std::vector<bool>(6), 0, 0};
  EXPECT_NEAR(rounds.least(whole).seconds / rounds.of(whole.peers).seconds, 1, 1e-9);
  EXPECT_NEAR(rounds.least(whole).usd / rounds.of(whole.peers).usd, 1, 1e-9);
}

TEST(SiteRounds, takes_what_the_model_of_rounds_says) {
  SiteRounds rounds = rounds_of(Pattern::tradewind);
  std::vector<PeerGroup> peers = six_sites();
  peers[0].count = 4;
  peers[3].count = 2;
  const std::vector<PeerGroup> used{peers[0], peers[3]};
  const Workload workload{.model = Models::built_in().find("CONV").value()};
  EXPECT_DOUBLE_EQ(rounds.of({4, 0, 0, 2, 0, 0}).seconds, derived_round(workload, used, Knowledge{}).comm_s);
}

/// Includes runs in which peers wait for matchmaking, and others.
TEST(SiteRounds, of_hivemind_take_and_cost_what_its_prediction_says) {
  std::vector<PeerGroup> sites = six_sites();
  for (const double target : {256.0, 32768.0}) {
    const Workload workload{.model = Models::built_in().find("CONV").value(),
                            .target_batch_size = target,
                            .pattern = Pattern::hivemind};
    SiteRounds rounds(workload, sites, market::NetworkProfile::built_in(), market::Tariffs::built_in());
    const std::vector<PeerGroup> used{{4, "T4", sites[0].site}, {2, "A10", sites[4].site}};
    const Prediction expected = predict(workload, used).value();
    const Averaging round = rounds.of({4, 0, 0, 0, 2, 0});
    const Space space{.samples_per_round = target};
    const Score score = score_of(space, {.samples_per_s = expected.local_sps.value, .usd_per_h = 1}, round);
    EXPECT_NEAR(score.samples_per_s / expected.throughput_sps.value, 1, 1e-9) << target;
    const Cost cost = cost_of(workload, used, expected);
    EXPECT_NEAR(score.usd_per_sample * score.samples_per_s * 3600 / cost.egress_usd_per_h.value, 1, 1e-9);
  }
}

}  // namespace
}  // namespace tw::plan
