// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/catalog_price.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "base/result.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/plan/price_sources.h"
#include "cli/terminal/terminal.h"
#include "host/system/machine_signs.h"
#include "market/catalog.h"
#include "market/region_name.h"
#include "peer/values.h"

namespace tw::cli {
namespace {

constexpr std::string_view kCatalog = "catalog";
constexpr std::size_t kMostTypesNamed = 8;

/// 0: in another region; the higher, the nearer.
int nearness(const market::Offer& offer, const market::Site& site) {
  if (offer.region == site.region)
    return 10 + static_cast<int>(!site.zone.empty() && offer.zone == site.zone);
  const std::vector<market::Site> areas = market::areas_around(site);
  for (std::size_t i = 0; i < areas.size(); ++i)
    if (areas[i].region == offer.region) return static_cast<int>(areas.size() - i);
  return 0;
}

}  // namespace

Result<market::Offer> price_of_type(const std::vector<market::Offer>& offers, const std::string& type,
                                    const market::Site& site, market::Purchase purchase) {
  const market::Offer* best = nullptr;
  std::set<std::string> known;
  for (const market::Offer& offer : offers) {
    if (offer.provider != site.provider || offer.purchase != purchase || nearness(offer, site) == 0) continue;
    known.insert(offer.vm_type);
    if (lower(offer.vm_type) != lower(type)) continue;
    const auto rank = [&](const market::Offer& one) {
      return std::pair(-nearness(one, site), one.usd_per_h);
    };
    if (best == nullptr || rank(offer) < rank(*best)) best = &offer;
  }
  if (best != nullptr) return *best;
  std::vector<std::string> some(known.begin(), known.end());
  const bool has_more = some.size() > kMostTypesNamed;
  if (has_more) some.resize(kMostTypesNamed);
  const std::string there = some.empty() ? "no machine is priced there"
                                         : fmt::format("priced there: {}{}", fmt::join(some, ", "),
                                                       has_more ? " and others (tw catalog list)" : "");
  return Error{fmt::format("no {} price of {} at {}; {}", market::to_string(purchase), type,
                           market::to_string(site), there)};
}

std::string type_of(const world::MachineSigns& signs) {
  return signs.sys_vendor == "Amazon EC2" ? signs.product_name : "";
}

Result<double> catalog_price(const std::string& price, const std::string& site, bool anchor) {
  const std::string option = "--usd-per-h " + price;
  const std::string type =
      price == kCatalog ? type_of(host::read_machine_signs()) : price.substr(kCatalog.size() + 1);
  if (type.empty())
    return Error{option +
                 ": the firmware does not name the type of this machine; expected catalog:TYPE, "
                 "such as catalog:n1-standard-8"};
  if (site.empty())
    return Error{option + ": expected --site PROVIDER:REGION too, for prices differ by region"};
  const auto place = market::parse_site(site);
  if (!place) return Error{option + ": " + place.error().message};
  const auto at_hand = price_sources({});
  if (!at_hand) return Error{option + ": " + at_hand.error().message};
  const auto purchase = anchor ? market::Purchase::on_demand : market::Purchase::spot;
  const auto offer = price_of_type(at_hand.value().offers, type, place.value(), purchase);
  if (!offer) return Error{option + ": " + offer.error().message};
  show_aside(fmt::format("price: {} USD/h, {} {} ({}, {})", significant(offer.value().usd_per_h, 4),
                         market::to_string(purchase), offer.value().vm_type, offer.value().source,
                         market::price_age_text(offer.value(), std::time(nullptr))));
  const std::string note = market::unknown_region_note(place.value(), offer.value());
  if (!note.empty()) show_aside("price: " + note);
  return offer.value().usd_per_h;
}

Result<std::string> price_text(const std::string& price, const std::string& site) {
  if (!peer::asks_catalog(price)) {
    TW_TRY(peer::parse_price_option("--usd-per-h", price));
    return price;
  }
  TW_TRY(const auto usd_per_h, catalog_price(price, site, false));
  return fmt::format("{}", usd_per_h);
}

}  // namespace tw::cli
