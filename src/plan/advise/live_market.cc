// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/live_market.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text/number.h"

namespace tw::plan {
namespace {

/// Share of the time in which a zone of the published campaigns has no machine.
constexpr double kDown = 0.4;
constexpr std::size_t kHoursOld = 3;  ///< bin of a zone that has been available for hours

/// The fleet in a zone, on the machines that are cheapest there.
struct Fleet {
  double usd_h = kInfinity;
  double machines = 0;
};

using FleetBySite = std::map<market::Site, Fleet>;

/// Price of the whole fleet where it is cheapest: infinite without such offers.
double fleet_usd_h(const Candidate& one, double samples_per_s) {
  return one.samples_per_s > 0 ? one.usd_per_h / one.samples_per_s * samples_per_s : kInfinity;
}

FleetBySite spot_fleets(const MarketSpace& market, double samples_per_s) {
  FleetBySite fleets;
  for (const Candidate& one : market.candidates) {
    const double usd_h = fleet_usd_h(one, samples_per_s);
    if (one.offer.purchase != market::Purchase::spot || usd_h == kInfinity) continue;
    Fleet& best = fleets[site_of(one.offer)];
    if (usd_h < best.usd_h) best = {usd_h, std::ceil(samples_per_s / one.samples_per_s)};
  }
  return fleets;
}

double on_demand_usd_h(const MarketSpace& market, double samples_per_s) {
  double least = kInfinity;
  for (const Candidate& one : market.candidates)
    if (one.offer.purchase == market::Purchase::on_demand)
      least = std::min(least, fleet_usd_h(one, samples_per_s));
  return least;
}

ZoneView zone_of(const market::Site& site, double usd_h, const std::vector<ZoneSeen>& seen) {
  static const SpotHazards prior = prior_without("");
  ZoneView zone{.name = to_string(site), .sight = {.up = true}, .spot_usd_h = usd_h, .hazards = prior};
  const auto met = std::ranges::find(seen, site, &ZoneSeen::site);
  if (met == seen.end()) return zone;
  zone.sight = met->sight;
  zone.hazards = hazards_of(met->spells, prior);
  return zone;
}

/// Up since the first of those that are up; down since the last went down.
SpotSight together(const std::vector<ZoneView>& zones) {
  SpotSight all = zones.front().sight;
  for (const ZoneView& zone : zones) {
    const double age_h = zone.sight.age_h;
    if (zone.sight.up && !all.up)
      all = zone.sight;
    else if (zone.sight.up == all.up)
      all.age_h = all.up ? std::max(all.age_h, age_h) : std::min(all.age_h, age_h);
  }
  return all;
}

/// The zone of the planned spot machines of which most live.
void find_machine(SpotView& view, const std::vector<ZoneSeen>& seen) {
  int most = 0;
  for (std::size_t z = 0; z < view.zones.size(); ++z)
    for (const ZoneSeen& met : seen)
      if (to_string(met.site) == view.zones[z].name && met.living > most && view.zones[z].sight.up) {
        most = met.living;
        view.mode = Mode::spot;
        view.zone = z;
      }
}

}  // namespace

void note_unanswered(std::vector<ZoneSeen>& zones, const std::vector<ZoneSeen>& asked) {
  for (const ZoneSeen& one : asked) {
    const auto known = std::ranges::find(zones, one.site, &ZoneSeen::site);
    if (known == zones.end()) {
      zones.push_back(one);
      continue;
    }
    known->refused_h = one.refused_h;
    if (known->living == 0 && known->sight.up) known->sight = one.sight;
  }
}

std::vector<ZoneView> avoided_zones(const MarketSpace& market, const std::vector<ZoneSeen>& seen) {
  std::vector<ZoneView> avoided;
  for (const auto& [site, fleet] : spot_fleets(market, 1)) {
    ZoneView zone = zone_of(site, fleet.usd_h, seen);
    const auto met = std::ranges::find(seen, site, &ZoneSeen::site);
    if (met != seen.end()) zone.sight = met->one_more();
    if (zone.avoid_h() > 0) avoided.push_back(std::move(zone));
  }
  return avoided;
}

std::optional<SpotView> live_view(const MarketSpace& market, const std::vector<int>& planned,
                                  const std::vector<ZoneSeen>& seen, const FleetNow& now) {
  const FleetBySite fleets = spot_fleets(market, now.samples_per_s);
  const double on_demand = on_demand_usd_h(market, now.samples_per_s);
  if (fleets.empty() || on_demand == kInfinity || on_demand <= 0 || now.samples_per_s <= 0)
    return std::nullopt;
  SpotView view{.work_left_h = now.work_left_h,
                .time_left_h = now.time_left_h,
                .passed_h = now.passed_h,
                .work_done_h = 0,
                .change_over_h = now.change_over_h,
                .on_demand_usd_h = on_demand,
                .zones = {},
                .outlook = prior_without(""),
                .elsewhere = {}};
  SpotSpells all;
  for (const ZoneSeen& met : seen) all += met.spells;
  view.outlook = hazards_of(all, view.outlook);
  for (const auto& [site, fleet] : fleets) {
    view.zones.push_back(zone_of(site, fleet.usd_h, seen));
    view.zones.back().move_usd = fleet.machines * state_usd(market, now.holders, site);
  }
  view.together = together(view.zones);
  view.elsewhere[kHoursOld] = 1 - std::pow(kDown, static_cast<double>(view.zones.size() - 1));
  if (now.complete) {
    find_machine(view, seen);
    const bool owns_spot = std::ranges::any_of(planned, [&, i = std::size_t{0}](int count) mutable {
      const bool spot = market.candidates[i++].offer.purchase == market::Purchase::spot;
      return count > 0 && spot;
    });
    if (view.mode == Mode::idle && !owns_spot) view.mode = Mode::on_demand;
  }
  return view;
}

std::string avoidance(const ZoneView& zone) {
  return fmt::format(
      "{} has given no machine for {:.0f} min: avoided for {:.0f} min more, until half of such "
      "shortages are over",
      zone.name, 60 * zone.sight.age_h, 60 * zone.avoid_h());
}

}  // namespace tw::plan
