// SPDX-License-Identifier: Apache-2.0
#include "market/tariffs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/csv.h"
#include "market/built_in.h"

namespace tw {
namespace {

constexpr Traffic kTraffic[] = {Traffic::inside,
                                Traffic::inter_zone,
                                Traffic::inter_region_us,
                                Traffic::inter_region_eu,
                                Traffic::inter_region_asia,
                                Traffic::inter_region_aus,
                                Traffic::any_to_or_from_aus,
                                Traffic::between_continents,
                                Traffic::internet};

Traffic between_areas(std::optional<Area> from, std::optional<Area> to) {
  if (from == Area::aus && to == Area::aus) return Traffic::inter_region_aus;
  if (from == Area::aus || to == Area::aus) return Traffic::any_to_or_from_aus;
  if (from != to || !from) return Traffic::between_continents;
  if (from == Area::us) return Traffic::inter_region_us;
  if (from == Area::eu) return Traffic::inter_region_eu;
  if (from == Area::asia) return Traffic::inter_region_asia;
  return Traffic::between_continents;
}

std::string key_of(const std::string& from, const std::string& to) { return from + " " + to; }

Status take_step(Tariff& tariff, const TariffStep& step, CsvRow& row) {
  const double last = tariff.steps.empty() ? 0 : tariff.steps.back().from_gb;
  if (tariff.steps.empty() && step.from_gb != 0) row.complain("from_gb", "0 in the first row of a tariff");
  if (!tariff.steps.empty() && step.from_gb <= last)
    row.complain("from_gb", fmt::format("more than the {} GB of the step before", last));
  tariff.steps.push_back(step);
  return row.status();
}

}  // namespace

std::string_view to_string(Traffic traffic) {
  switch (traffic) {
    case Traffic::inside:
      return "inside";
    case Traffic::inter_zone:
      return "inter-zone";
    case Traffic::inter_region_us:
      return "inter-region-us";
    case Traffic::inter_region_eu:
      return "inter-region-eu";
    case Traffic::inter_region_asia:
      return "inter-region-asia";
    case Traffic::inter_region_aus:
      return "inter-region-aus";
    case Traffic::any_to_or_from_aus:
      return "to-or-from-aus";
    case Traffic::between_continents:
      return "between-continents";
    case Traffic::internet:
      return "internet";
  }
  return "";
}

Traffic traffic_between(const Site& from, const Site& to) {
  if (is_area(from))
    return from.region == to.region ? Traffic::inter_zone : between_areas(area_of(from), area_of(to));
  if (from.provider != to.provider) return Traffic::internet;
  if (from == to) return Traffic::inside;
  if (from.region == to.region) return Traffic::inter_zone;
  return between_areas(area_of(from), area_of(to));
}

Result<Tariffs> read_tariffs(const std::string& file, std::string_view text) {
  const auto table =
      CsvTable::parse(file, text, {"provider", "traffic", "from_gb", "usd_per_gb", "source", "as_of"});
  if (!table) return table.error();
  Tariffs tariffs;
  for (std::size_t i = 0; i < table.value().size(); ++i) {
    CsvRow row = table.value().row(i);
    const std::string traffic = row.word("traffic");
    const bool known = std::any_of(std::begin(kTraffic), std::end(kTraffic),
                                   [&](Traffic t) { return to_string(t) == traffic; });
    std::string names;
    for (const Traffic t : kTraffic) names += (names.empty() ? "" : ", ") + std::string(to_string(t));
    if (!known) row.complain("traffic", "one of " + names);
    const TariffStep step{row.number("from_gb", {.least = 0}), row.number("usd_per_gb", {.least = 0})};
    Tariff& tariff = tariffs.rows_[key_of(row.word("provider"), traffic)];
    tariff.source = fmt::format("{}, {}", row.text("source"), row.text("as_of"));
    if (Status taken = take_step(tariff, step, row); !taken) return taken.error();
  }
  return tariffs;
}

const Tariffs& Tariffs::built_in() {
  static const Tariffs tariffs = [] {
    auto read = read_tariffs("tariffs.csv", built_in_file("tariffs.csv"));
    TW_CHECK(read.ok());
    Tariffs built_in = std::move(read).value();
    built_in.stores_["b2"] = {0.01, 0.005, "Erben et al. 2024 sec. 3"};
    return built_in;
  }();
  return tariffs;
}

const Tariff* Tariffs::tariff(const Site& from, const Site& to) const {
  const auto row = rows_.find(key_of(from.provider, std::string(to_string(traffic_between(from, to)))));
  return row == rows_.end() ? nullptr : &row->second;
}

double Tariffs::usd_per_gb(const Site& from, const Site& to, double sent_gb) const {
  const Tariff* row = tariff(from, to);
  if (row == nullptr) return 0;
  double usd = 0;
  for (const TariffStep& step : row->steps)
    if (sent_gb >= step.from_gb) usd = step.usd_per_gb;
  return usd;
}

double Tariffs::usd(const Site& from, const Site& to, double gb, double sent_gb) const {
  const Tariff* row = tariff(from, to);
  if (row == nullptr) return 0;
  double usd = 0;
  for (std::size_t i = 0; i < row->steps.size(); ++i) {
    const double next =
        i + 1 < row->steps.size() ? row->steps[i + 1].from_gb : std::numeric_limits<double>::infinity();
    const double begin = std::max(sent_gb, row->steps[i].from_gb);
    usd += std::max(0.0, std::min(sent_gb + gb, next) - begin) * row->steps[i].usd_per_gb;
  }
  return usd;
}

Result<DataStore> Tariffs::store(const std::string& name) const {
  const auto store = stores_.find(name);
  if (store != stores_.end()) return store->second;
  std::string names;
  for (const auto& [known, unused] : stores_) names += (names.empty() ? "" : ", ") + known;
  return Error{fmt::format("data store {}: expected one of {}", name, names)};
}

}  // namespace tw
