// SPDX-License-Identifier: Apache-2.0
#include "market/tariffs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/result.h"
#include "base/text/csv.h"
#include "market/built_in.h"

namespace tw::market {
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

std::string names_of_traffic() {
  std::string names;
  for (const Traffic t : kTraffic) names += (names.empty() ? "" : ", ") + std::string(to_string(t));
  return names;
}

std::string source_of(CsvRow& row) { return fmt::format("{}, {}", row.word("source"), row.word("as_of")); }

/// The texts of add_regions that match a receiver, the narrowest first.
std::vector<std::string> receivers(const Site& from, const Site& to) {
  const auto area = area_of(to);
  const std::string any = from.provider == to.provider ? to.provider : "*";
  std::vector<std::string> names = {to_string(region_of(to))};
  if (area) names.push_back(any + ":" + std::string(to_string(*area)));
  names.push_back(any);
  return names;
}

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
  if (from.provider != to.provider) return Traffic::internet;
  if (is_area(from))
    return from.region == to.region ? Traffic::inter_zone : between_areas(area_of(from), area_of(to));
  if (from == to) return Traffic::inside;
  if (from.region == to.region) return Traffic::inter_zone;
  return between_areas(area_of(from), area_of(to));
}

Status Tariffs::add_classes(const std::string& file, std::string_view text) {
  TW_TRY(const auto table,
         CsvTable::parse(file, text, {"provider", "traffic", "from_gb", "usd_per_gb", "source", "as_of"}));
  std::map<Key, Tariff> added;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const std::string traffic = row.word("traffic");
    const bool known = std::any_of(std::begin(kTraffic), std::end(kTraffic),
                                   [&](Traffic t) { return to_string(t) == traffic; });
    if (!known) row.complain("traffic", "one of " + names_of_traffic());
    const TariffStep step{row.number("from_gb", {.least = 0}), row.number("usd_per_gb", {.least = 0})};
    Tariff& tariff = added[{site_at(row.word("provider"), "").provider, traffic}];
    tariff.source = source_of(row);
    TW_TRY(take_step(tariff, step, row));
  }
  for (auto& [key, tariff] : added) classes_[key] = std::move(tariff);
  return Unit{};
}

Status Tariffs::add_regions(const std::string& file, std::string_view text) {
  TW_TRY(const auto table, CsvTable::parse(file, text, {"from", "to", "usd_per_gb", "source", "as_of"}));
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const auto from = parse_site(row.word("from"));
    if (!from || !from.value().zone.empty()) row.complain("from", "PROVIDER:REGION");
    Tariff tariff{{{0, row.number("usd_per_gb", {.least = 0})}}, source_of(row)};
    const std::string to = row.word("to");
    if (!row.status()) return row.status();
    regions_[{to_string(from.value()), to}] = std::move(tariff);
  }
  return Unit{};
}

Status Tariffs::add_stores(const std::string& file, std::string_view text) {
  TW_TRY(const auto table,
         CsvTable::parse(file, text,
                         {"name", "site", "read_usd_per_gb", "stored_usd_per_gb_month",
                          "usd_per_million_reads", "usd_per_million_writes", "source", "as_of"}));
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    DataStore store{.name = row.word("name"),
                    .site = row.text("site"),
                    .read_usd_per_gb = row.number_or("read_usd_per_gb", 0, {.least = 0}),
                    .source = source_of(row)};
    for (const auto& [name, usd] : {std::pair{"stored_usd_per_gb_month", &store.stored_usd_per_gb_month},
                                    std::pair{"usd_per_million_reads", &store.usd_per_million_reads},
                                    std::pair{"usd_per_million_writes", &store.usd_per_million_writes}})
      if (!row.empty(name)) *usd = row.number(name, {.least = 0});
    if (store.site.empty() && row.empty("read_usd_per_gb"))
      row.complain("read_usd_per_gb", "a price, or a site");
    if (!row.status()) return row.status();
    stores_[store.name] = std::move(store);
  }
  return Unit{};
}

const Tariffs& Tariffs::built_in() {
  static const Tariffs tariffs = [] {
    Tariffs built_in;
    TW_CHECK(built_in.add_classes("tariffs.csv", built_in_file("tariffs.csv")).ok());
    TW_CHECK(built_in.add_regions("egress.csv", built_in_file("egress.csv")).ok());
    TW_CHECK(built_in.add_stores("stores.csv", built_in_file("stores.csv")).ok());
    return built_in;
  }();
  return tariffs;
}

const Tariff* Tariffs::tariff(const Site& from, const Site& to) const {
  if (region_of(from) != region_of(to)) {
    for (const std::string& receiver : receivers(from, to)) {
      const auto row = regions_.find({to_string(region_of(from)), receiver});
      if (row != regions_.end()) return &row->second;
    }
  }
  const auto row = classes_.find({from.provider, std::string(to_string(traffic_between(from, to)))});
  return row == classes_.end() ? nullptr : &row->second;
}

bool Tariffs::knows(const Site& from) const {
  const auto of_provider = [&](const auto& row) {
    return row.first.first == from.provider || row.first.first.starts_with(from.provider + ":");
  };
  return from.provider.starts_with("onprem") || std::ranges::any_of(classes_, of_provider) ||
         std::ranges::any_of(regions_, of_provider);
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
  const auto colon = name.find(':');
  const auto known = stores_.find(name.substr(0, colon));
  const bool regional = known != stores_.end() && !known->second.site.empty();
  if (known != stores_.end() && regional == (colon != std::string::npos)) {
    DataStore store = known->second;
    store.name = name;
    if (regional) store.site += name.substr(colon);
    return store;
  }
  std::string names;
  for (const auto& [other, store] : stores_)
    names += (names.empty() ? "" : ", ") + other + (store.site.empty() ? "" : ":REGION");
  return Error{fmt::format("data store {}: expected one of {}", name, names)};
}

double Tariffs::read_usd_per_gb(const DataStore& store, const Site& reader) const {
  const auto site = parse_site(store.site);
  if (!site) return store.read_usd_per_gb;
  return region_of(site.value()) == region_of(reader) ? 0 : usd_per_gb(site.value(), reader);
}

double Tariffs::write_usd_per_gb(const Site& writer, const DataStore& store) const {
  const auto site = parse_site(store.site);
  if (!site) return usd_per_gb(writer, {.provider = store.name});
  return region_of(site.value()) == region_of(writer) ? 0 : usd_per_gb(writer, site.value());
}

}  // namespace tw::market
