// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Places of machines. Peers of one site share a LAN.
namespace tw::market {

/// provider:region[:zone], in the clouds' own words (gcp:us-central1:us-central1-a, aws:us-west-2:usw2-az1).
/// A region may also be an area of area_of, as in publications: gcp:us, onprem:eu. Made by parse_site or
/// site_at, which map other names of providers (gc, google: gcp), so that equal places compare equal.
struct Site {
  std::string provider;
  std::string region;
  std::string zone;

  auto operator<=>(const Site&) const = default;
};

Result<Site> parse_site(const std::string& text);
Site site_at(const std::string& provider, const std::string& region, const std::string& zone = "");
std::string to_string(const Site& site);

/// The region of a site, without a zone.
Site region_of(const Site& site);

/// The part of the world that tariffs and network rates depend on.
enum class Area { us, eu, asia, aus, south_america, middle_east, africa };

std::string_view to_string(Area area);

/// From the name of the region, as each provider writes it; nothing if the name does not tell.
std::optional<Area> area_of(const Site& site);

/// True for an area or a part of one (us-west), as in publications; false for a cloud's own region.
bool is_area(const Site& site);

/// The areas that a site lies in, from narrow to wide, as sites of the same provider: gcp:us-west, gcp:us for
/// gcp:us-west1:us-west1-b.
std::vector<Site> areas_around(const Site& site);

/// On-premise hosts with a network of their own are sites of their own in the measurements: RTX8000 at
/// onprem:eu is onprem-rtx8000:eu. Other sites stay as they are.
Site site_of_host(const Site& site, std::string_view gpu);

}  // namespace tw::market
