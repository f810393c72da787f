// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "plan/advise/spot_policy.h"
#include "plan/search/market_space.h"

/// The spot market of a run under way, as its policy sees it.
namespace tw::plan {

/// What the run itself has met at one site.
struct ZoneSeen {
  market::Site site;
  SpotSight sight;    ///< down: the last that happened there was a loss, or a request that is not answered
  int living = 0;     ///< spot machines
  SpotSpells spells;  ///< lives of its machines
  std::optional<double> refused_h{};  ///< for so long one more machine was asked for in vain

  /// Whether one more machine is available.
  SpotSight one_more() const { return refused_h ? SpotSight{false, *refused_h} : sight; }
};

/// Notes zones that gave no machine when asked. Unless a machine lives there, such a zone has none.
void note_unanswered(std::vector<ZoneSeen>& zones, const std::vector<ZoneSeen>& asked);

/// Zones with spot offers that are asked for no machine now.
std::vector<ZoneView> avoided_zones(const MarketSpace& market, const std::vector<ZoneSeen>& seen);

/// The spot fleet as one machine that does all the work. Prices are those of the whole fleet.
struct FleetNow {
  double work_left_h = 0;  ///< with the plan's machines at work
  double time_left_h = 0;
  double passed_h = 0;
  double change_over_h = 0;
  double samples_per_s = 0;             ///< of the plan's machines
  bool complete = true;                 ///< no machine of the plan is missing
  std::vector<market::Site> holders{};  ///< sites of its living machines, which have the state
};

/// Each site with spot offers is a zone; one that the run has not met counts as available. The fleet moves
/// at once, and each of its machines fetches the state. Nothing without spot offers.
std::optional<SpotView> live_view(const MarketSpace& market, const std::vector<int>& planned,
                                  const std::vector<ZoneSeen>& seen, const FleetNow& now);

/// Why a replacement avoids the zone, and for how long.
std::string avoidance(const ZoneView& zone);

}  // namespace tw::plan
