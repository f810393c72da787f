// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "market/offer.h"
#include "market/site.h"
#include "world/machine.h"

/// `--usd-per-h catalog[:TYPE]` of tw run: what catalogs say that this machine costs.
namespace tw::cli {

/// The offer of this type with this purchase: in the zone of the site, else in its region, else in the
/// narrowest area around it; the cheapest where there are several. Error: names the type, and the known
/// offers there. Pure.
Result<market::Offer> price_of_type(const std::vector<market::Offer>& offers, const std::string& type,
                                    const market::Site& site, market::Purchase purchase);

/// The type of this machine by its firmware; empty if it does not name it (only AWS does).
std::string type_of(const world::MachineSigns& signs);

/// price: "catalog" or "catalog:TYPE"; site: of --site. Says on stderr which price was taken, from which
/// source.
Result<double> catalog_price(const std::string& price, const std::string& site, bool anchor);

/// For processes that are started with --usd-per-h: the number, also where the user asked for the catalogs.
/// Empty for an empty text.
Result<std::string> price_text(const std::string& price, const std::string& site);

}  // namespace tw::cli
