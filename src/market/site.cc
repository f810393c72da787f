// SPDX-License-Identifier: Apache-2.0
#include "market/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text/text.h"

namespace tw::market {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOtherNames = {{
    {"gc", "gcp"},
    {"google", "gcp"},
    {"amazon", "aws"},
    {"microsoft", "azure"},
    {"lambdalabs", "lambda"},
}};

/// Providers whose regions and zones have lower-case names.
constexpr std::string_view kLowerCase[] = {"aws", "azure", "gcp", "lambda"};

using AreaOfWord = std::pair<std::string_view, Area>;

/// Beginnings of region names; the first match counts.
constexpr AreaOfWord kBeginnings[] = {
    {"ap-southeast-2", Area::aus},
    {"ap-southeast-4", Area::aus},
    {"ap-southeast-6", Area::aus},
    {"aus", Area::aus},
    {"oce", Area::aus},
    {"newzealand", Area::aus},
    {"southamerica", Area::south_america},
    {"sa-", Area::south_america},
    {"brazil", Area::south_america},
    {"chile", Area::south_america},
    {"us", Area::us},
    {"northamerica", Area::us},
    {"ca-", Area::us},
    {"mx-", Area::us},
    {"canada", Area::us},
    {"mexico", Area::us},
    {"eu", Area::eu},
    {"france", Area::eu},
    {"germany", Area::eu},
    {"italy", Area::eu},
    {"northeurope", Area::eu},
    {"westeurope", Area::eu},
    {"norway", Area::eu},
    {"poland", Area::eu},
    {"spain", Area::eu},
    {"sweden", Area::eu},
    {"switzerland", Area::eu},
    {"uk", Area::eu},
    {"austria", Area::eu},
    {"belgium", Area::eu},
    {"denmark", Area::eu},
    {"asia", Area::asia},
    {"ap-", Area::asia},
    {"eastasia", Area::asia},
    {"southeastasia", Area::asia},
    {"japan", Area::asia},
    {"korea", Area::asia},
    {"indonesia", Area::asia},
    {"malaysia", Area::asia},
    {"jioindia", Area::asia},
    {"centralindia", Area::asia},
    {"southindia", Area::asia},
    {"westindia", Area::asia},
    {"cn-", Area::asia},
    {"china", Area::asia},
    {"taiwan", Area::asia},
    {"me-", Area::middle_east},
    {"il-", Area::middle_east},
    {"israel", Area::middle_east},
    {"qatar", Area::middle_east},
    {"uae", Area::middle_east},
    {"saudi", Area::middle_east},
    {"africa", Area::africa},
    {"af-", Area::africa},
    {"southafrica", Area::africa},
};

/// Endings of region names: azure's centralus, vast's "Denmark, DK, EU".
constexpr AreaOfWord kEndings[] = {
    {"us", Area::us},       {"us2", Area::us},    {"us3", Area::us},   {", na", Area::us},
    {", eu", Area::eu},     {", as", Area::asia}, {", oc", Area::aus}, {", sa", Area::south_america},
    {", af", Area::africa},
};

}  // namespace

Site site_at(const std::string& provider, const std::string& region, const std::string& zone) {
  std::string known = lower(provider);
  for (const auto& [other, name] : kOtherNames)
    if (known == other) known = name;
  // Names of other providers may have any case: Denmark, DK, EU of Vast.
  const bool lower_case =
      std::find(std::begin(kLowerCase), std::end(kLowerCase), known) != std::end(kLowerCase);
  return lower_case ? Site{known, lower(region), lower(zone)} : Site{known, region, zone};
}

Result<Site> parse_site(const std::string& text) {
  const auto first = text.find(':');
  const auto second = first == std::string::npos ? first : text.find(':', first + 1);
  const std::string provider = text.substr(0, first);
  const std::string region = first == std::string::npos ? "" : text.substr(first + 1, second - first - 1);
  const std::string zone = second == std::string::npos ? "" : text.substr(second + 1);
  const bool more = zone.find(':') != std::string::npos || (second != std::string::npos && zone.empty());
  if (provider.empty() || region.empty() || more)
    return Error{fmt::format(
        "{}: not a site; expected PROVIDER:REGION or PROVIDER:REGION:ZONE, such as gcp:us-central1", text)};
  return site_at(provider, region, zone);
}

std::string to_string(const Site& site) {
  return site.provider + ":" + site.region + (site.zone.empty() ? "" : ":" + site.zone);
}

Site region_of(const Site& site) { return {site.provider, site.region, ""}; }

std::string_view to_string(Area area) {
  switch (area) {
    case Area::us:
      return "us";
    case Area::eu:
      return "eu";
    case Area::asia:
      return "asia";
    case Area::aus:
      return "aus";
    case Area::south_america:
      return "south-america";
    case Area::middle_east:
      return "middle-east";
    case Area::africa:
      return "africa";
  }
  return "";
}

std::optional<Area> area_of(const Site& site) {
  const std::string region = lower(site.region);
  for (const auto& [word, area] : kBeginnings)
    if (region.starts_with(word)) return area;
  for (const auto& [word, area] : kEndings)
    if (region.ends_with(word)) return area;
  if (region == "south-america") return Area::south_america;
  if (region == "middle-east") return Area::middle_east;
  return std::nullopt;
}

bool is_area(const Site& site) {
  const auto area = area_of(site);
  if (!area) return false;
  const std::string_view name = to_string(*area);
  if (site.region == name) return true;
  if (!site.region.starts_with(std::string(name) + "-")) return false;
  const std::string_view part = std::string_view(site.region).substr(name.size() + 1);
  constexpr std::string_view kParts[] = {"west", "east", "south", "north", "central"};
  return std::find(std::begin(kParts), std::end(kParts), part) != std::end(kParts);
}

std::vector<Site> areas_around(const Site& site) {
  std::vector<Site> areas;
  for (const std::string_view part : {"-west", "-east", "-south", "-north", "-central", ""}) {
    const auto area = area_of(site);
    if (!area) break;
    const std::string name = std::string(to_string(*area)) + std::string(part);
    if (site.region.starts_with(name) || part.empty()) areas.push_back({site.provider, name, ""});
  }
  return areas;
}

Site site_of_host(const Site& site, std::string_view gpu) {
  if (site.provider != "onprem") return site;
  const std::string name = lower(gpu);
  if (name.starts_with("dgx2") || name.starts_with("dgx-2")) return {"onprem-dgx2", site.region, site.zone};
  if (name == "rtx8000") return {"onprem-rtx8000", site.region, site.zone};
  return site;
}

}  // namespace tw::market
