// SPDX-License-Identifier: Apache-2.0
#include "plan/search/search_relaxation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/number.h"

namespace tw::plan {
namespace {

constexpr int kSlopes = 64;
/// Range below the steepest slope: machines whose speeds differ by less per dollar differ by less than the
/// first pass's tolerance.
constexpr double kSlopeRange = 3e3;
constexpr int kHalvings = 14;  ///< of the range of prices

/// Most peers of the choice, without regard to other choices.
int most_of(const Space& space, const Choice& choice) {
  int most = std::min(choice.most, space.most_peers);
  if (choice.quota_use <= 0) return most;
  for (const int quota : choice.quotas)
    most = std::min(most, static_cast<int>(space.quotas[static_cast<std::size_t>(quota)] / choice.quota_use +
                                           kQuotaRounding));
  return most;
}

/// The only one that the relaxation counts over several choices: with one quota for each choice the best
/// choices first are an upper bound. -1: none.
int counted_quota(const Choice& choice) {
  return choice.quotas.empty() || choice.quota_use <= 0 ? -1 : choice.quotas.front();
}

}  // namespace

Relaxation::Relaxation(const Space& space) : space_(space) {
  double steepest = 0;
  for (const Choice& choice : space.choices)
    if (choice.usd_per_h > 0) steepest = std::max(steepest, choice.samples_per_s / choice.usd_per_h);
  slopes_.push_back(0);
  for (int k = 0; k + 1 < kSlopes && steepest > 0; ++k)
    slopes_.push_back(2 * steepest * std::pow(kSlopeRange, -static_cast<double>(k) / (kSlopes - 2)));
  least_start_h_ = kInfinity;
  for (const Choice& choice : space.choices) {
    if (choice.slow_samples_per_s > 0) measures_ = 2;
    if (choice.most > 0) least_start_h_ = std::min(least_start_h_, choice.start_h);
  }
  for (std::size_t q = 0; q < space.quotas.size(); ++q) {
    double least_use = kInfinity;
    for (const Choice& choice : space.choices)
      if (counted_quota(choice) == static_cast<int>(q)) least_use = std::min(least_use, choice.quota_use);
    const double fit = std::isinf(least_use) ? 0 : space.quotas[q] / least_use + kQuotaRounding;
    quota_peers_.push_back(static_cast<int>(std::min<double>(fit, space.most_peers)));
  }
}

double Relaxation::gain_of(std::size_t choice, std::size_t slope) const {
  const Choice& one = space_.choices[choice];
  return gain_of(MachineSums{one.samples_per_s, one.slow_samples_per_s, one.usd_per_h, 0}, slope);
}

bool Relaxation::before(std::uint32_t a, std::uint32_t b, std::size_t slope) const {
  if (slope < slopes()) {
    const double gain_a = gain_of(a, slope);
    const double gain_b = gain_of(b, slope);
    if (gain_a != gain_b) return gain_a > gain_b;
  }
  const double usd_a = space_.choices[a].usd_per_h;
  const double usd_b = space_.choices[b].usd_per_h;
  return usd_a != usd_b ? usd_a < usd_b : a < b;
}

Relaxation::Ranking Relaxation::ranking_of(const std::vector<std::size_t>& choices) const {
  Ranking ranking;
  std::vector<std::uint32_t> order;
  for (std::size_t choice : choices)
    if (most_of(space_, space_.choices[choice]) > 0) order.push_back(static_cast<std::uint32_t>(choice));
  for (std::size_t slope = 0; slope <= slopes(); ++slope) {
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return before(a, b, slope); });
    Ranked peers;
    for (std::uint32_t choice : order)
      peers.insert(peers.end(), static_cast<std::size_t>(most_of(space_, space_.choices[choice])), choice);
    ranking.push_back(merged(peers, {}, slope));
  }
  return ranking;
}

void Relaxation::merge(Ranking& into, const Ranking& other) const {
  for (std::size_t slope = 0; slope < into.size(); ++slope) {
    const Ranked& some = into[slope];
    const Ranked& more = other[slope];
    const bool full = some.size() == static_cast<std::size_t>(space_.most_peers);
    if (more.empty() || (full && !before(more.front(), some.back(), slope))) continue;
    into[slope] = merged(some, more, slope);
  }
}

Relaxation::Ranked Relaxation::merged(const Ranked& a, const Ranked& b, std::size_t slope) const {
  const auto most = static_cast<std::size_t>(space_.most_peers);
  std::vector<int> left = quota_peers_;
  Ranked peers;
  peers.reserve(std::min(most, a.size() + b.size()));
  auto at_a = a.begin();
  auto at_b = b.begin();
  while (peers.size() < most && (at_a != a.end() || at_b != b.end())) {
    const bool first = at_b == b.end() || (at_a != a.end() && before(*at_a, *at_b, slope));
    const std::uint32_t next = first ? *at_a++ : *at_b++;
    const int quota = counted_quota(space_.choices[next]);
    if (quota >= 0 && left[static_cast<std::size_t>(quota)]-- <= 0) continue;
    peers.push_back(next);
  }
  return peers;
}

Gains Relaxation::gains_of(const Ranking& ranking) const {
  Gains gains;
  gains.slopes_ = slopes();
  const auto numbers = static_cast<std::size_t>(space_.most_peers) + 1;
  gains.gain_.assign(numbers * gains.slopes_, -kInfinity);
  gains.cheapest_.assign(numbers, kInfinity);
  gains.dearest_.assign(numbers, 0);
  for (std::size_t slope = 0; slope < gains.slopes_; ++slope) {
    double gain = 0;
    double usd = 0;
    gains.gain_[slope] = 0;
    for (std::size_t n = 0; n < ranking[slope].size(); ++n) {
      gain += gain_of(ranking[slope][n], slope);
      usd += space_.choices[ranking[slope][n]].usd_per_h;
      gains.gain_[(n + 1) * gains.slopes_ + slope] = gain;
      if (slope % slopes_.size() == 0) gains.dearest_[n + 1] = std::max(gains.dearest_[n + 1], usd);
    }
  }
  double usd = 0;
  gains.cheapest_[0] = 0;
  for (std::size_t n = 0; n < ranking.back().size(); ++n)
    gains.cheapest_[n + 1] = usd += space_.choices[ranking.back()[n]].usd_per_h;
  return gains;
}

Relaxation::Sums Relaxation::none() const { return {.gain = std::vector<double>(slopes())}; }

void Relaxation::add(Sums& sums, const Gains& gains, int peers) const {
  const double* gain = gains.gain(peers);
  for (std::size_t k = 0; k < sums.gain.size(); ++k) sums.gain[k] += gain[k];
  sums.cheapest_usd_per_h += gains.cheapest_usd_per_h(peers);
  sums.dearest_usd_per_h += gains.dearest_usd_per_h(peers);
}

double Relaxation::fastest_at(const Sums& sums, double usd_per_h, std::size_t measure) const {
  const double* gain = &sums.gain[measure * slopes_.size()];
  double fastest = kInfinity;
  for (std::size_t k = 0; k < slopes_.size(); ++k)
    fastest = std::min(fastest, slopes_[k] * usd_per_h + gain[k]);
  return fastest;
}

/// A range of prices, and its least value if its fastest machines had its lowest price.
struct Relaxation::Interval {
  const Relaxation& relaxation;
  const Objective& objective;
  const Sums& sums;
  const Averaging& round;
  double enough = 0;

  double ideal(double low, double high) const {
    MachineSums machines{.usd_per_h = low, .start_h = relaxation.least_start_h_};
    machines.samples_per_s = relaxation.fastest_at(sums, high, 0);
    if (!(machines.samples_per_s > 0)) return kInfinity;
    if (relaxation.measures_ > 1) machines.slow_samples_per_s = relaxation.fastest_at(sums, high, 1);
    return objective(score_of(relaxation.space_, machines, round));
  }

  double least(double low, double high, int halvings) const {
    const double value = ideal(low, high);
    if (value >= enough || halvings == 0 || !(high > low)) return value;
    const double middle = (low + high) / 2;
    const double cheaper = least(low, middle, halvings - 1);
    // One part that is not ruled out decides; the bound of the other part is not needed.
    if (cheaper < enough) return std::max(value, std::min(cheaper, ideal(middle, high)));
    return std::max(value, std::min(cheaper, least(middle, high, halvings - 1)));
  }
};

double Relaxation::least_value(const Objective& objective, const Sums& sums, const Averaging& round,
                               double enough) const {
  if (!(sums.gain[0] > 0) || std::isinf(sums.cheapest_usd_per_h)) return kInfinity;
  const Interval interval{*this, objective, sums, round, enough};
  return interval.least(sums.cheapest_usd_per_h, std::max(sums.cheapest_usd_per_h, sums.dearest_usd_per_h),
                        kHalvings);
}

}  // namespace tw::plan
