// SPDX-License-Identifier: Apache-2.0
#include "plan/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/prng.h"

namespace tw::plan {
namespace {

double usd_per_million(const Score& score) { return 1e6 * score.usd_per_h() / (3600 * score.samples_per_s); }

constexpr Effort kUnlimited{.steps = 100'000'000};
constexpr double kNotAllowed = std::numeric_limits<double>::infinity();

double between(Prng& random, double least, double most) { return least + (most - least) * random.uniform(); }

/// Offers at up to four sites; averaging takes longer with more peers and over slower links, and costs by the
/// bytes that leave sites.
Space random_market(Prng& random, int offers, int most_peers) {
  Space space;
  space.sites = 1 + random.below(4);
  space.most_peers = most_peers;
  space.samples_per_round = between(random, 100, 4000);
  space.usd_per_sample = 1e-7 * random.uniform();
  for (int i = 0; i < offers; ++i)
    space.choices.push_back(
        {.site = random.below(space.sites),
         .samples_per_s = between(random, 5, 100),
         .usd_per_h = between(random, 0.1, 3),
         .most = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(most_peers))),
         .domain = i % 5});
  std::vector<double> link_s;
  for (std::size_t site = 0; site < space.sites; ++site) link_s.push_back(between(random, 0.2, 20));
  const double usd = 0.01 * random.uniform();
  space.least = [=](const PartialPlan& plan) {
    const double had = std::accumulate(plan.peers.begin(), plan.peers.end(), 0);
    const double all = had + plan.more;
    Averaging round;
    double quickest_s = plan.more > 0 ? kNotAllowed : 0;
    bool apart = true;  // all fixed sites are closed
    for (std::size_t site = 0; site < plan.peers.size(); ++site) {
      const double here = plan.peers[site];
      if (plan.more > 0 && plan.open[site]) quickest_s = std::min(quickest_s, link_s[site]);
      if (here == 0) continue;
      apart = apart && !plan.open[site];
      round.seconds = std::max(round.seconds, link_s[site] * 2 * (all - 1) / all);
      round.usd += usd * here * (had - here) / all;
    }
    round.seconds = std::max(round.seconds, quickest_s * 2 * (all - 1) / all);
    if (apart) round.usd += usd * 2 * had * plan.more / all;
    return round;
  };
  space.averaging = [=](const std::vector<int>& peers) {
    const double all = std::accumulate(peers.begin(), peers.end(), 0);
    Averaging round;
    for (std::size_t site = 0; site < peers.size(); ++site) {
      if (peers[site] == 0) continue;
      round.seconds = std::max(round.seconds, link_s[site] * 2 * (all - 1) / all);
      round.usd += usd * peers[site] * (all - peers[site]) / all;
    }
    return round;
  };
  return space;
}

Objective least_per_sample() {
  return [](const Score& score) { return usd_per_million(score); };
}

Objective fastest_within(double usd_per_h) {
  return [=](const Score& score) {
    return score.vm_usd_per_h <= usd_per_h ? 1e6 / score.samples_per_s : kNotAllowed;
  };
}

Objective cheapest_at_least(double samples_per_s) {
  return [=](const Score& score) {
    return score.samples_per_s >= samples_per_s ? usd_per_million(score) : kNotAllowed;
  };
}

/// The least value over all plans that may be taken.
double least_value(const Space& space, const Objective& objective) {
  std::vector<int> counts(space.choices.size());
  double least = kNotAllowed;
  const std::function<void(std::size_t, int)> fill = [&](std::size_t choice, int left) {
    if (choice == counts.size()) {
      if (!allowed(space, counts) || (space.accepts && !space.accepts(counts))) return;
      const Score score = score_of(space, counts);
      if (!space.keeps || space.keeps(score)) least = std::min(least, objective(score));
      return;
    }
    for (int count = 0; count <= std::min(left, space.choices[choice].most); ++count) {
      counts[choice] = count;
      fill(choice + 1, left - count);
    }
    counts[choice] = 0;
  };
  fill(0, space.most_peers);
  return least;
}

void expect_optimum(const Space& space, const Objective& objective, std::uint64_t seed) {
  const double least = least_value(space, objective);
  const SearchResult result = search(space, objective, kUnlimited);
  ASSERT_TRUE(result.exact) << "seed " << seed;
  ASSERT_EQ(result.best.empty(), least == kNotAllowed) << "seed " << seed;
  if (result.best.empty()) return;
  const Selection& best = result.best.front();
  EXPECT_NEAR(best.value / least, 1, 1e-12) << "seed " << seed;
  EXPECT_TRUE(allowed(space, best.counts)) << "seed " << seed;
  EXPECT_NEAR(objective(score_of(space, best.counts)) / best.value, 1, 1e-12) << "seed " << seed;
  EXPECT_EQ(result.gap(), 0) << "seed " << seed;
}

TEST(Search, finds_the_best_plan_that_is_accepted_and_fast_enough_with_bad_luck) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Prng random(seed);
    Space space = random_market(random, 5, 4);
    space.slow_averaging = 1.2;
    for (Choice& choice : space.choices)
      choice.slow_samples_per_s = choice.samples_per_s * between(random, 0.4, 1);
    space.accepts = [](const std::vector<int>& counts) {
      return std::accumulate(counts.begin(), counts.end(), 0) % 2 == 0 || counts.front() > 0;
    };
    const double least = between(random, 20, 100);
    expect_optimum(
        space,
        [=](const Score& score) {
          return score.slow_samples_per_s >= least ? usd_per_million(score) : kNotAllowed;
        },
        seed);
  }
}

TEST(Search, finds_the_optimum_where_reading_costs_more_at_some_sites) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Prng random(seed);
    Space space = random_market(random, 8, 8);
    std::vector<double> usd;
    for (std::size_t site = 0; site < space.sites; ++site)
      usd.push_back(site == 0 ? 0 : between(random, 0, 1e-5));
    for (Choice& choice : space.choices) choice.usd_per_sample = usd[choice.site];
    expect_optimum(space, seed % 2 == 0 ? least_per_sample() : cheapest_at_least(between(random, 20, 200)),
                   seed);
  }
}

TEST(Search, finds_the_optimum_where_all_peers_can_be_lost_at_once) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Prng random(seed);
    Space space = random_market(random, 6, 4);
    space.checkpoint_s = between(random, 10, 600);
    space.shocks_per_h = between(random, 0, 0.2);
    for (Choice& choice : space.choices) {
      if (random.below(3) == 0) continue;  // it stays
      choice.lost_per_h = between(random, 0.01, 1);
      choice.away = between(random, 0.001, 0.3);
      choice.struck = between(random, 0.1, 0.9);
    }
    expect_optimum(space, seed % 2 == 0 ? least_per_sample() : cheapest_at_least(between(random, 5, 100)),
                   seed);
  }
}

TEST(Search, finds_the_fastest_plan_of_those_that_keep_a_price_which_slower_ones_keep) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Prng random(seed);
    Space space = random_market(random, 6, 5);
    const double most_usd_per_h = between(random, 0.5, 8);
    space.keeps = [=](const Score& score) { return score.usd_per_h() <= most_usd_per_h; };
    expect_optimum(
        space,
        [=](const Score& score) {
          const double left_usd = most_usd_per_h - score.vm_usd_per_h;
          if (left_usd < 0) return kNotAllowed;
          return 1e6 / std::min(score.samples_per_s, left_usd / (3600 * score.usd_per_sample));
        },
        seed);
  }
}

TEST(Search, finds_what_exhaustive_search_finds_on_200_random_markets) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Prng random(seed);
    const Space space = random_market(random, 8, 8);
    switch (seed % 3) {
      case 0:
        expect_optimum(space, least_per_sample(), seed);
        break;
      case 1:
        expect_optimum(space, fastest_within(between(random, 0.2, 10)), seed);
        break;
      default:
        expect_optimum(space, cheapest_at_least(between(random, 20, 500)), seed);
    }
  }
}

TEST(Search, keeps_quotas_that_types_share_and_spreads_over_failure_domains) {
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    Prng random(seed);
    Space space = random_market(random, 6, 6);
    space.quotas = {between(random, 1, 8), between(random, 1, 8)};
    for (Choice& choice : space.choices) {
      for (const int quota : {0, 1})
        if (random.below(2) == 0) choice.quotas.push_back(quota);
      choice.quota_use = between(random, 0.5, 3);
    }
    space.least_domains = 1 + static_cast<int>(random.below(3));
    expect_optimum(space, fastest_within(between(random, 1, 10)), seed);
    expect_optimum(space, least_per_sample(), seed);
  }
}

TEST(Search, says_how_far_from_the_optimum_it_may_be_when_its_effort_is_spent) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Prng random(seed);
    const Space space = random_market(random, 8, 8);
    const Objective objective = fastest_within(4);
    const double least = least_value(space, objective);
    const SearchResult hasty = search(space, objective, {.steps = 1});
    ASSERT_FALSE(hasty.exact);
    if (hasty.best.empty()) continue;
    EXPECT_LE(hasty.bound, least * (1 + 1e-12)) << seed;
    EXPECT_GE(least, hasty.best.front().value * (1 - hasty.gap()) * (1 - 1e-12)) << seed;
  }
}

TEST(Search, the_runner_up_uses_other_sites) {
  Prng random(5);
  Space space = random_market(random, 8, 8);
  while (space.sites < 3) space = random_market(random, 8, 8);
  const SearchResult result = search(space, fastest_within(6), kUnlimited);
  ASSERT_GE(result.best.size(), 2U);
  EXPECT_LE(result.best[0].value, result.best[1].value);
  const auto sites = [&](const Selection& one) {
    std::vector<bool> used(space.sites);
    for (std::size_t i = 0; i < one.counts.size(); ++i)
      if (one.counts[i] > 0) used[space.choices[i].site] = true;
    return used;
  };
  EXPECT_NE(sites(result.best[0]), sites(result.best[1]));
}

TEST(Score, of_a_sample_counts_its_data_and_its_part_of_the_traffic) {
  const Space space{.samples_per_round = 1000, .usd_per_sample = 0.002};
  const Score score = score_of(space, {.samples_per_s = 100, .usd_per_h = 3}, {.seconds = 10, .usd = 5});
  EXPECT_NEAR(score.usd_per_sample, 0.002 + 0.005, 1e-12);
  EXPECT_NEAR(score.samples_per_s, 50, 1e-12);
  EXPECT_EQ(score.vm_usd_per_h, 3);
}

}  // namespace
}  // namespace tw::plan
