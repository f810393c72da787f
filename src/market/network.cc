// SPDX-License-Identifier: Apache-2.0
#include "market/network.h"

#include <algorithm>

#include "base/check.h"
#include "base/csv.h"
#include "base/date.h"
#include "market/built_in.h"

namespace tw {
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

std::vector<Site> places_of(const Site& site) {
  std::vector<Site> places = {site};
  if (!site.zone.empty()) places.push_back(region_of(site));
  for (const Site& area : areas_around(site))
    if (area != places.back()) places.push_back(area);
  return places;
}

bool on_premise(const Site& site) { return site.provider.starts_with("onprem"); }

bool same_areas(const Site& a, const Site& b, const Site& from, const Site& to) {
  return area_of(a) == area_of(from) && area_of(b) == area_of(to);
}

}  // namespace

PathRate NetworkProfile::path(const Site& from, const Site& to) const {
  const std::vector<Site> froms = places_of(from);
  const std::vector<Site> tos = places_of(to);
  for (std::size_t wide = 0; wide < froms.size() + tos.size() - 1; ++wide) {
    for (std::size_t f = 0; f <= wide && f < froms.size(); ++f) {
      if (wide - f >= tos.size()) continue;
      const Site& a = froms[f];
      const Site& b = tos[wide - f];
      if (a == b && region_of(from) != region_of(to))
        continue;  // the area's LAN is not the way between regions
      if (const auto there = paths_.find({a, b}); there != paths_.end()) return there->second;
      if (const auto back = paths_.find({b, a}); back != paths_.end()) return back->second;
    }
  }
  return estimate(from, to);
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

Result<NetworkProfile> read_network(const std::string& file, std::string_view text) {
  const auto table = CsvTable::parse(
      file, text, {"from", "to", "rtt_ms", "stream_mbit_s", "path_mbit_s", "source", "as_of"});
  if (!table) return table.error();
  NetworkProfile profile;
  for (std::size_t i = 0; i < table.value().size(); ++i) {
    CsvRow row = table.value().row(i);
    const auto from = parse_site(row.word("from"));
    const bool outwards = row.word("to") == "*";
    const auto to = outwards ? from : parse_site(row.text("to"));
    const auto as_of = parse_date(row.word("as_of"));
    if (!from) row.complain("from", "PROVIDER:REGION or PROVIDER:REGION:ZONE");
    if (!to) row.complain("to", "PROVIDER:REGION, PROVIDER:REGION:ZONE, or * for the cap of a whole site");
    if (!as_of) row.complain("as_of", "a date such as 2023-04-25");
    const PathRate rate{
        .rtt_s = outwards ? 0 : row.number("rtt_ms", {.least = 0}) / 1e3,
        .stream_bytes_per_s = outwards ? 0 : row.number("stream_mbit_s", {.least = 1e-6}) * kBytesPerMbit,
        .path_bytes_per_s = row.number_or("path_mbit_s", 0, {.least = 1e-6}) * kBytesPerMbit,
        .source = row.text("source"),
        .as_of_unix_s = as_of.value_or(0)};
    if (!row.status()) return row.status().error();
    SiteCaps caps = profile.caps(from.value());
    caps.source = rate.source;
    if (outwards) {
      caps.site_bytes_per_s = rate.path_bytes_per_s;
    } else {
      profile.set(from.value(), to.value(), rate);
      if (from.value() != to.value()) continue;
      caps.host_bytes_per_s = std::max(rate.path_bytes_per_s, rate.stream_bytes_per_s);
    }
    profile.set(from.value(), caps);
  }
  return profile;
}

const NetworkProfile& NetworkProfile::built_in() {
  static const NetworkProfile profile = [] {
    auto read = read_network("network.csv", built_in_file("network.csv"));
    TW_CHECK(read.ok());
    return std::move(read).value();
  }();
  return profile;
}

}  // namespace tw
