// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Where machines stand. Peers of one site share a LAN.
namespace tw::market {

/// provider:region[:zone], in the clouds' own words (gcp:us-central1:us-central1-a, aws:us-west-2:usw2-az1).
/// A region may also be one of the areas of area_of, as in publications: gcp:us, onprem:eu. Made by
/// parse_site or site_at, which know the providers' other names (gc, google: gcp), so that equal places are
/// equal.
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

/// The part of the world by which tariffs and network rates are classed.
enum class Area { us, eu, asia, aus, south_america, middle_east, africa };

std::string_view to_string(Area area);

/// By the name of the region, as each provider writes it; nothing where it tells none.
std::optional<Area> area_of(const Site& site);

/// The region is an area, or a part of one (us-west), as publications name it, and not a cloud's own region.
bool is_area(const Site& site);

/// The areas that a site lies in, from narrow to wide, as sites of the same provider: gcp:us-west, gcp:us for
/// gcp:us-west1:us-west1-b.
std::vector<Site> areas_around(const Site& site);

/// On-premise hosts with a network of their own are sites of their own in the measurements: RTX8000 at
/// onprem:eu is onprem-rtx8000:eu. Other sites stay as they are.
Site site_of_host(const Site& site, std::string_view gpu);

}  // namespace tw::market
