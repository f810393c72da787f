// SPDX-License-Identifier: Apache-2.0
#include "market/region_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tw::market {
namespace {

/// Names of Azure are words without a common form, and other providers have any.
constexpr std::string_view kNumbered[] = {"aws", "gcp", "lambda"};

bool may_be_region(const Site& site) {
  if (std::ranges::find(kNumbered, site.provider) == std::end(kNumbered)) return true;
  const std::size_t word = site.region.find_last_not_of("0123456789");
  return site.region.find('-') != std::string::npos && word + 1 < site.region.size();
}

}  // namespace

std::string unknown_region_note(const Site& site, const Offer& offer) {
  const Site there = region_of(site_of(offer));
  if (there == region_of(site) || is_area(site) || may_be_region(site)) return "";
  return fmt::format("{} is no known region: priced as {}", to_string(region_of(site)), to_string(there));
}

}  // namespace tw::market
