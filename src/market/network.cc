// SPDX-License-Identifier: Apache-2.0
#include "market/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/result.h"
#include "base/text/csv.h"
#include "base/text/date.h"
#include "market/built_in.h"

namespace tw::market {
namespace {

constexpr double kBytesPerMbit = 1e6 / 8;

/// TCP windows that Erben et al. 2024 saw: 2.4 to 3.1 MB between clouds, 0.9 to 1.5 MB from on-premise hosts.
constexpr double kCloudWindowBytes = 2.6e6;
constexpr double kOnPremiseWindowBytes = 1.1e6;

// Where nothing was measured.
constexpr double kLanRttS = 0.0007;
constexpr double kAreaRttS = 0.035;  ///< regions of one area
constexpr double kFarRttS = 0.2;     ///< areas without any measured path
constexpr double kHostBytesPerS = 5000 * kBytesPerMbit;

std::vector<Site> own_places(const Site& site) {
  if (site.zone.empty()) return {site};
  return {site, region_of(site)};
}

/// The site itself, its region, and the areas around it.
std::vector<Site> places_of(const Site& site) {
  std::vector<Site> places = own_places(site);
  for (const Site& area : areas_around(site))
    if (area != places.back()) places.push_back(area);
  return places;
}

bool on_premise(const Site& site) { return site.provider.starts_with("onprem"); }

bool same_areas(const Site& a, const Site& b, const Site& from, const Site& to) {
  return area_of(a) == area_of(from) && area_of(b) == area_of(to);
}

}  // namespace

const PathRate* NetworkProfile::row(const std::vector<Site>& froms, const std::vector<Site>& tos) const {
  const bool one_region = region_of(froms.front()) == region_of(tos.front());
  for (std::size_t wide = 0; wide < froms.size() + tos.size() - 1; ++wide) {
    for (std::size_t f = 0; f <= wide && f < froms.size(); ++f) {
      if (wide - f >= tos.size()) continue;
      const Site& a = froms[f];
      const Site& b = tos[wide - f];
      if (a == b && !one_region) continue;  // the LAN of an area is not the path between its regions
      if (const auto there = paths_.find({a, b}); there != paths_.end()) return &there->second;
      if (const auto back = paths_.find({b, a}); back != paths_.end()) return &back->second;
    }
  }
  return nullptr;
}

PathRate NetworkProfile::path(const Site& from, const Site& to) const {
  if (const PathRate* own = row(own_places(from), own_places(to))) return *own;
  const auto round_trip = round_trips_s_.find(std::minmax(region_of(from), region_of(to)));
  if (round_trip != round_trips_s_.end()) {
    return {.rtt_s = round_trip->second,
            .stream_bytes_per_s = kCloudWindowBytes / round_trip->second,
            .source = "skyplane 2022-04 (round trip), window 2.6 MB"};
  }
  if (const PathRate* around = row(places_of(from), places_of(to))) return *around;
  return estimate(from, to);
}

Status NetworkProfile::add_round_trips(const std::string& file, std::string_view text) {
  TW_TRY(const auto table, CsvTable::parse(file, text, {"a", "b", "rtt_ms"}));
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const auto a = parse_site(row.word("a"));
    const auto b = parse_site(row.word("b"));
    if (!a) row.complain("a", "PROVIDER:REGION");
    if (!b) row.complain("b", "PROVIDER:REGION");
    const double rtt_s = row.number("rtt_ms", {.least = 1e-3}) / 1e3;
    if (!row.status()) return row.status();
    round_trips_s_[std::minmax(a.value(), b.value())] = rtt_s;
  }
  return Unit{};
}

void NetworkProfile::set(const Site& from, const Site& to, PathRate rate) {
  if (from == to) {
    caps_[from].host_bytes_per_s = std::max(rate.path_bytes_per_s, rate.stream_bytes_per_s);
  }
  paths_[{from, to}] = std::move(rate);
}

void NetworkProfile::limit(const Site& site, double bytes_per_s, const std::string& source,
                           std::int64_t as_of_unix_s) {
  SiteCaps& caps = caps_[site];
  caps = {caps.host_bytes_per_s, bytes_per_s, source, as_of_unix_s};
}

void NetworkProfile::merge(const NetworkProfile& other) {
  for (const auto& [sites, rate] : other.paths_) paths_[sites] = rate;
  for (const auto& [site, caps] : other.caps_) caps_[site] = caps;
  for (const auto& [regions, rtt_s] : other.round_trips_s_) round_trips_s_[regions] = rtt_s;
}

PathRate NetworkProfile::estimate(const Site& from, const Site& to) const {
  PathRate rate{.rtt_s = kFarRttS, .source = "estimated", .measured = false};
  if (region_of(from) == region_of(to)) {
    rate.rtt_s = kLanRttS;
    rate.stream_bytes_per_s = rate.path_bytes_per_s = std::min(host_cap(from), host_cap(to));
    return rate;
  }
  if (area_of(from) && area_of(from) == area_of(to)) {
    rate.rtt_s = kAreaRttS;
  } else if (area_of(from) && area_of(to)) {
    for (const auto& [sites, known] : paths_)
      if (same_areas(sites.first, sites.second, from, to) || same_areas(sites.first, sites.second, to, from))
        rate.rtt_s = known.rtt_s;
  }
  const double window = on_premise(from) || on_premise(to) ? kOnPremiseWindowBytes : kCloudWindowBytes;
  rate.stream_bytes_per_s = window / rate.rtt_s;
  return rate;
}

double NetworkProfile::host_cap(const Site& site) const {
  const double cap = caps(site).host_bytes_per_s;
  return cap > 0 ? cap : kHostBytesPerS;
}

SiteCaps NetworkProfile::caps(const Site& site) const {
  for (const Site& place : places_of(site))
    if (const auto row = caps_.find(place); row != caps_.end()) return row->second;
  return {};
}

double NetworkProfile::bytes_per_s(const Site& from, const Site& to, int streams) const {
  const PathRate rate = path(from, to);
  double most = std::min({host_cap(from), host_cap(to), rate.stream_bytes_per_s * streams});
  if (rate.path_bytes_per_s > 0) most = std::min(most, rate.path_bytes_per_s);
  return most;
}

namespace {

/// A row of read_network; a site cap has no rates of a path.
struct NetworkRow {
  Site from;
  std::optional<Site> to;
  PathRate rate;
};

NetworkRow read_row(CsvRow& row) {
  const bool outwards = row.word("to") == "*";
  const auto from = parse_site(row.word("from"));
  const auto to = outwards ? from : parse_site(row.text("to"));
  const auto as_of = parse_date(row.word("as_of"));
  if (!from) row.complain("from", "PROVIDER:REGION or PROVIDER:REGION:ZONE");
  if (!to) row.complain("to", "PROVIDER:REGION, PROVIDER:REGION:ZONE, or * for the cap of a whole site");
  if (!as_of) row.complain("as_of", "a date such as 2023-04-25");
  NetworkRow read{.rate = {.source = row.text("source"), .as_of_unix_s = as_of.value_or(0)}};
  if (from) read.from = from.value();
  if (to && !outwards) read.to = to.value();
  constexpr CsvRange kRate{.least = 1e-6};
  if (outwards) {
    read.rate.path_bytes_per_s = row.number("path_mbit_s", kRate) * kBytesPerMbit;
  } else {
    read.rate.rtt_s = row.number("rtt_ms", {.least = 0}) / 1e3;
    read.rate.stream_bytes_per_s = row.number("stream_mbit_s", kRate) * kBytesPerMbit;
    read.rate.path_bytes_per_s = row.number_or("path_mbit_s", 0, kRate) * kBytesPerMbit;
  }
  return read;
}

}  // namespace

Result<NetworkProfile> read_network(const std::string& file, std::string_view text) {
  TW_TRY(const auto table,
         CsvTable::parse(file, text,
                         {"from", "to", "rtt_ms", "stream_mbit_s", "path_mbit_s", "source", "as_of"}));
  NetworkProfile profile;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const NetworkRow read = read_row(row);
    if (!row.status()) return row.status().error();
    if (read.to) {
      profile.set(read.from, *read.to, read.rate);
    } else {
      profile.limit(read.from, read.rate.path_bytes_per_s, read.rate.source, read.rate.as_of_unix_s);
    }
  }
  return profile;
}

std::string write_network(const NetworkProfile& profile) {
  const auto mbit = [](double bytes_per_s) {
    return bytes_per_s > 0 ? fmt::format("{:.4g}", bytes_per_s / kBytesPerMbit) : "";
  };
  std::string text = csv_line({"from", "to", "rtt_ms", "stream_mbit_s", "path_mbit_s", "source", "as_of"});
  for (const auto& [sites, rate] : profile.paths()) {
    text += csv_line({to_string(sites.first), to_string(sites.second),
                      fmt::format("{:.4g}", rate.rtt_s * 1e3), mbit(rate.stream_bytes_per_s),
                      mbit(rate.path_bytes_per_s), rate.source, date_text(rate.as_of_unix_s)});
  }
  for (const auto& [site, caps] : profile.all_caps()) {
    if (caps.site_bytes_per_s == 0) continue;
    text += csv_line({to_string(site), "*", "", "", mbit(caps.site_bytes_per_s), caps.source,
                      date_text(caps.as_of_unix_s)});
  }
  return text;
}

const NetworkProfile& NetworkProfile::built_in() {
  static const NetworkProfile profile = [] {
    auto read = read_network("network.csv", built_in_file("network.csv"));
    TW_CHECK(read.ok());
    TW_CHECK(read.value().add_round_trips("rtt.csv", built_in_file("rtt.csv")).ok());
    return std::move(read).value();
  }();
  return profile;
}

}  // namespace tw::market
