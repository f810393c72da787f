// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "base/result.h"

/// How long spot machines stay available in a zone, or unavailable: rates that depend on the age of the
/// state.
namespace tw::plan {

inline constexpr int kSpotAges = 6;
/// Where the age bins begin.
inline constexpr std::array<double, kSpotAges> kSpotAge_h{0, 16.0 / 60, 40.0 / 60, 100.0 / 60, 4, 13};

int spot_age_bin(double age_h);

/// Time spent in a state, and how often it ended, by its age.
struct SpotSpells {
  struct Bin {
    double hours = 0;
    double ends = 0;
  };

  using Bins = std::array<Bin, kSpotAges>;

  Bins up{}, down{};

  Bins& of(bool is_up) { return is_up ? up : down; }

  const Bins& of(bool is_up) const { return is_up ? up : down; }

  /// A machine that was available for so long; ended: it was taken then.
  void add_life(double hours, bool ended);

  SpotSpells& operator+=(const SpotSpells& more);
};

/// Ends an hour, by age.
using SpotRates = std::array<double, kSpotAges>;

struct SpotHazards {
  SpotRates lost_per_h{};
  SpotRates found_per_h{};

  const SpotRates& of(bool is_up) const { return is_up ? lost_per_h : found_per_h; }
};

/// What was seen, and a prior that counts as much as 4 hours in each bin.
SpotHazards hazards_of(const SpotSpells& seen, const SpotHazards& prior);

/// Rates of a prior where nothing at all was seen: one end in 3 h up, and in 2 h down.
SpotHazards guessed_hazards();

/// How far ahead it matters how long a zone lasts.
inline constexpr double kSpotHorizon_h = 24;

/// Mean time that a state of this age still lasts, at most `horizon_h`.
double mean_time_left_h(const SpotRates& ends_per_h, double age_h, double horizon_h);

/// Time after which a state of this age has ended with this probability.
double time_until_ended_h(const SpotRates& ends_per_h, double age_h, double probability);

/// Published campaigns of measurements (catalog/spot_spells.csv).
struct SpotCampaign {
  std::string name;  ///< first characters of the names of its traces
  SpotSpells spells;
};

/// CSV with the columns campaign,state,from_min,hours,ends. Errors name file, line and column.
Result<std::vector<SpotCampaign>> read_spot_campaigns(const std::string& file, std::string_view text);

/// Hazards of all built-in campaigns but that to which the trace belongs.
SpotHazards prior_without(std::string_view trace);

}  // namespace tw::plan
