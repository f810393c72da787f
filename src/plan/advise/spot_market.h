// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "plan/model/expected_cost.h"

/// What is known of the spot market: which zones have machines, since when, and how long that lasts.
namespace tw::plan {

/// One zone over time, seen in steps of equal length: whether the first, second, ... machine is available.
class ZoneHistory {
 public:
  ZoneHistory(int machines, double tick_h);

  /// Number of machines that are available during the next tick.
  void see(int available);

  /// The machine after `taken` others.
  SpotSight sight(int taken) const;

  const SpotSpells& spells() const { return spells_; }

  int available() const { return available_; }

 private:
  double tick_h_;
  int available_ = -1;
  std::vector<int> ticks_;  ///< since the last change, by machine
  SpotSpells spells_;
};

/// Zones that serve one job.
class SpotMarket {
 public:
  /// priors: one for each zone.
  SpotMarket(int machines, double tick_h, std::vector<SpotHazards> priors);

  /// Number of available machines in each zone during the next tick.
  void see(const std::vector<int>& available);

  std::size_t zones() const { return zones_.size(); }

  SpotSight zone(std::size_t zone, int taken) const { return zones_[zone].sight(taken); }

  /// All zones as one.
  SpotSight together(int taken) const { return together_.sight(taken); }

  SpotHazards hazards(std::size_t zone) const { return hazards_of(zones_[zone].spells(), priors_[zone]); }

  /// Hazards for a machine that always takes the zone which lasts longest: how soon that one is lost, and how
  /// soon any zone has a machine when none has.
  SpotHazards outlook() const;

  /// Probabilities, by the age of its state, that another zone is available when such a zone is lost.
  std::array<double, kSpotAges> elsewhere() const;

 private:
  /// A machine that always takes the zone which lasts longest: what happens to it is what the market offers.
  struct Scout {
    std::optional<std::size_t> zone;
    SpotSpells spells;  ///< of its zones
    double losses = 0;
    std::array<double, kSpotAges> elsewhere{};  ///< losses at which another zone was available, by its age
  };

  void send_scout();
  std::optional<std::size_t> longest_lasting() const;

  std::vector<SpotHazards> priors_;
  std::vector<ZoneHistory> zones_;
  ZoneHistory together_;
  double tick_h_;
  Scout scout_;
};

}  // namespace tw::plan
