// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/alternatives.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/text/number.h"

namespace tw::plan {
namespace {

/// Number of candidates of other sites that are examined for each machine: those with the cheapest samples.
constexpr std::size_t kMostLookedAt = 64;

bool is_owned(const Candidate& one) { return one.offer.purchase == market::Purchase::owned; }

bool stays(const Candidate& one) { return one.offer.purchase != market::Purchase::spot; }

/// A machine that is slower by more replaces nothing. Those of more than kSlow come first.
constexpr double kSlowest = 0.25;
constexpr double kSlow = 0.5;

/// Worth of a plan: the smaller the better. It misses a limit; its new machine is slow; cost or time.
using Worth = std::tuple<bool, bool, double>;

Worth worth_of(const Job& job, const Score& score, double speed) {
  const double hours = job.samples / score.samples_per_s / 3600;
  const double usd = hours * score.usd_per_h();
  const bool misses = (job.deadline_h > 0 && hours > job.deadline_h) ||
                      (job.budget_usd > 0 && usd > job.budget_usd) ||
                      (job.budget_usd_per_h > 0 && score.usd_per_h() > job.budget_usd_per_h);
  return {misses, speed < kSlow, job.goal == Goal::fastest ? hours : usd};
}

/// Sorted by the cost of a sample on these machines alone.
std::vector<std::size_t> cheapest_first(const MarketSpace& market) {
  std::vector<std::size_t> order(market.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  const auto usd_per_sample = [&](std::size_t i) {
    const Choice& one = market.space.choices[i];
    return one.samples_per_s > 0 ? one.usd_per_h / one.samples_per_s + 3600 * one.usd_per_sample : kInfinity;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return usd_per_sample(a) < usd_per_sample(b); });
  return order;
}

}  // namespace

std::map<std::size_t, std::vector<std::size_t>> alternatives_of(const Job& job, const MarketSpace& market,
                                                                const std::vector<int>& counts) {
  const std::vector<std::size_t> order = cheapest_first(market);
  std::map<std::size_t, std::vector<std::size_t>> all;
  for (std::size_t planned = 0; planned < counts.size(); ++planned) {
    const Candidate& machine = market.candidates[planned];
    if (counts[planned] == 0 || is_owned(machine)) continue;
    std::vector<std::pair<Worth, std::size_t>> found;
    std::size_t looked_at = 0;
    for (std::size_t other : order) {
      const Candidate& one = market.candidates[other];
      const bool here = one.site == machine.site;
      if (other == planned || is_owned(one) || (stays(machine) && !stays(one))) continue;
      const double speed = one.samples_per_s / machine.samples_per_s;
      if (!(speed >= kSlowest) || counts[other] >= market.space.choices[other].most) continue;
      if (!here && ++looked_at > kMostLookedAt) continue;
      std::vector<int> changed = counts;
      --changed[planned];
      ++changed[other];
      found.emplace_back(worth_of(job, score_of(market.space, changed), speed), other);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < std::min(found.size(), kMostAlternatives); ++i)
      all[planned].push_back(found[i].second);
  }
  return all;
}

}  // namespace tw::plan
