// SPDX-License-Identifier: Apache-2.0
#include "plan/model/spot_hazards.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text/csv.h"
#include "base/text/number.h"
#include "market/built_in.h"

namespace tw::plan {
namespace {

constexpr double kPrior_h = 4;
constexpr double kGuessedUp_h = 3;
constexpr double kGuessedDown_h = 2;

double end_of_bin_h(int bin) {
  return bin + 1 < kSpotAges ? kSpotAge_h[static_cast<std::size_t>(bin) + 1] : kInfinity;
}

}  // namespace

int spot_age_bin(double age_h) {
  int bin = 0;
  while (bin + 1 < kSpotAges && age_h >= kSpotAge_h[static_cast<std::size_t>(bin) + 1] - 1e-9) ++bin;
  return bin;
}

void SpotSpells::add_life(double hours, bool ended) {
  const int last = spot_age_bin(hours);
  for (int bin = 0; bin <= last; ++bin)
    up[static_cast<std::size_t>(bin)].hours +=
        std::min(hours, end_of_bin_h(bin)) - kSpotAge_h[static_cast<std::size_t>(bin)];
  up[static_cast<std::size_t>(last)].ends += ended ? 1 : 0;
}

SpotSpells& SpotSpells::operator+=(const SpotSpells& more) {
  for (const bool is_up : {false, true}) {
    for (std::size_t bin = 0; bin < kSpotAges; ++bin) {
      of(is_up)[bin].hours += more.of(is_up)[bin].hours;
      of(is_up)[bin].ends += more.of(is_up)[bin].ends;
    }
  }
  return *this;
}

SpotHazards hazards_of(const SpotSpells& seen, const SpotHazards& prior) {
  SpotHazards learned;
  for (std::size_t bin = 0; bin < kSpotAges; ++bin) {
    learned.lost_per_h[bin] =
        (seen.up[bin].ends + kPrior_h * prior.lost_per_h[bin]) / (seen.up[bin].hours + kPrior_h);
    learned.found_per_h[bin] =
        (seen.down[bin].ends + kPrior_h * prior.found_per_h[bin]) / (seen.down[bin].hours + kPrior_h);
  }
  return learned;
}

SpotHazards guessed_hazards() {
  SpotHazards guess;
  guess.lost_per_h.fill(1 / kGuessedUp_h);
  guess.found_per_h.fill(1 / kGuessedDown_h);
  return guess;
}

double mean_time_left_h(const SpotRates& ends_per_h, double age_h, double horizon_h) {
  double mean_h = 0, lasts = 1, passed_h = 0;
  for (int bin = spot_age_bin(age_h); bin < kSpotAges && passed_h < horizon_h; ++bin) {
    const double length_h = std::min(end_of_bin_h(bin) - (age_h + passed_h), horizon_h - passed_h);
    const double rate = ends_per_h[static_cast<std::size_t>(bin)];
    const double then = lasts * std::exp(-rate * length_h);
    mean_h += rate > 1e-9 ? (lasts - then) / rate : lasts * length_h;
    lasts = then;
    passed_h += length_h;
  }
  return mean_h;
}

double time_until_ended_h(const SpotRates& ends_per_h, double age_h, double probability) {
  TW_CHECK(probability >= 0 && probability < 1);
  double left = -std::log(1 - probability);
  double passed_h = 0;
  for (int bin = spot_age_bin(age_h);; ++bin) {
    const double rate = ends_per_h[static_cast<std::size_t>(bin)];
    const double length_h = end_of_bin_h(bin) - (age_h + passed_h);
    if (rate * length_h >= left) return passed_h + left / rate;
    if (bin + 1 == kSpotAges) return kInfinity;
    left -= rate * length_h;
    passed_h += length_h;
  }
}

Result<std::vector<SpotCampaign>> read_spot_campaigns(const std::string& file, std::string_view text) {
  TW_TRY(const CsvTable table,
         CsvTable::parse(file, text, {"campaign", "state", "from_min", "hours", "ends"}));
  std::vector<SpotCampaign> campaigns;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const std::string name = row.word("campaign");
    const std::string state = row.word("state");
    if (state != "up" && state != "down") row.complain("state", "up or down");
    const double from_h = row.number("from_min", {.least = 0, .most = 13 * 60}) / 60;
    const SpotSpells::Bin bin{row.number("hours", {.least = 0}), row.number("ends", {.least = 0})};
    TW_TRY(row.status());
    if (campaigns.empty() || campaigns.back().name != name) campaigns.push_back({.name = name, .spells = {}});
    campaigns.back().spells.of(state == "up")[static_cast<std::size_t>(spot_age_bin(from_h))] = bin;
  }
  return campaigns;
}

SpotHazards prior_without(std::string_view trace) {
  static const auto campaigns =
      read_spot_campaigns("spot_spells.csv", market::built_in_file("spot_spells.csv"));
  TW_CHECK(campaigns.ok());
  SpotSpells others;
  for (const SpotCampaign& campaign : campaigns.value())
    if (!trace.starts_with(campaign.name)) others += campaign.spells;
  return hazards_of(others, guessed_hazards());
}

}  // namespace tw::plan
