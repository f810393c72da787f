// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/spot_market.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tw::plan {

ZoneHistory::ZoneHistory(int machines, double tick_h)
    : tick_h_(tick_h), ticks_(static_cast<std::size_t>(machines), 0) {}

void ZoneHistory::see(int available) {
  for (std::size_t i = 0; i < ticks_.size(); ++i) {
    const bool up = static_cast<int>(i) < available;
    const bool was_up = static_cast<int>(i) < available_;
    if (available_ >= 0) {
      SpotSpells::Bin& bin = spells_.of(was_up)[static_cast<std::size_t>(spot_age_bin(ticks_[i] * tick_h_))];
      bin.hours += tick_h_;
      bin.ends += up != was_up ? 1 : 0;
      ticks_[i] = up == was_up ? ticks_[i] + 1 : 0;
    }
  }
  available_ = available;
}

SpotSight ZoneHistory::sight(int taken) const {
  const auto i = static_cast<std::size_t>(std::clamp(taken, 0, static_cast<int>(ticks_.size()) - 1));
  return {.up = taken < available_, .age_h = ticks_[i] * tick_h_};
}

SpotMarket::SpotMarket(int machines, double tick_h, std::vector<SpotHazards> priors)
    : priors_(std::move(priors)),
      zones_(priors_.size(), ZoneHistory(machines, tick_h)),
      together_(machines, tick_h),
      tick_h_(tick_h) {
  TW_CHECK(machines > 0 && tick_h > 0 && !priors_.empty());
}

void SpotMarket::see(const std::vector<int>& available) {
  TW_CHECK(available.size() == zones_.size());
  std::optional<SpotSight> before;
  if (scout_.zone) before = zone(*scout_.zone, 0);
  for (std::size_t z = 0; z < zones_.size(); ++z) zones_[z].see(available[z]);
  together_.see(std::accumulate(available.begin(), available.end(), 0));
  if (before) {
    SpotSpells::Bin& bin = scout_.spells.up[static_cast<std::size_t>(spot_age_bin(before->age_h))];
    bin.hours += tick_h_;
    bin.ends += zone(*scout_.zone, 0).up ? 0 : 1;
  }
  send_scout();
}

void SpotMarket::send_scout() {
  if (scout_.zone && zone(*scout_.zone, 0).up) return;
  const bool lost = scout_.zone.has_value();
  scout_.zone = longest_lasting();
  if (!lost) return;
  scout_.losses += 1;
  if (scout_.zone) scout_.elsewhere[static_cast<std::size_t>(spot_age_bin(zone(*scout_.zone, 0).age_h))] += 1;
}

std::optional<std::size_t> SpotMarket::longest_lasting() const {
  std::optional<std::size_t> best;
  double longest_h = 0;
  for (std::size_t z = 0; z < zones_.size(); ++z) {
    const SpotSight sight = zone(z, 0);
    if (!sight.up) continue;
    const double lasts_h = mean_time_left_h(hazards(z).lost_per_h, sight.age_h, kSpotHorizon_h);
    if (best && lasts_h <= longest_h) continue;
    best = z;
    longest_h = lasts_h;
  }
  return best;
}

SpotHazards SpotMarket::outlook() const {
  if (zones_.size() == 1) return hazards(0);
  SpotHazards prior = priors_.front();
  SpotHazards market = hazards_of(scout_.spells, prior);
  market.found_per_h = hazards_of(together_.spells(), prior).found_per_h;
  return market;
}

std::array<double, kSpotAges> SpotMarket::elsewhere() const {
  std::array<double, kSpotAges> elsewhere{};
  if (zones_.size() == 1) return elsewhere;
  // As a prior, one loss half of which another zone covers that is hours old.
  constexpr std::size_t kHoursOld = 3;
  for (std::size_t age = 0; age < kSpotAges; ++age)
    elsewhere[age] = (scout_.elsewhere[age] + (age == kHoursOld ? 0.5 : 0)) / (scout_.losses + 1);
  return elsewhere;
}

}  // namespace tw::plan
