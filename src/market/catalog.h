// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "market/offer.h"

/// Offers from files: SkyPilot's catalogs, the user's own CSV, and a small built-in one.
namespace tw::market {

struct CatalogFile {
  std::string name;  ///< in messages and as the source of its offers
  std::string_view text;
  std::int64_t as_of_unix_s = 0;  ///< of its prices; 0: not known
};

/// Content of a catalog. Each row became offers (one for each way to buy it), describes the host of other
/// rows (GCP lists GPU and host apart), or was left out for a reason.
struct CatalogOffers {
  std::vector<Offer> offers;
  int rows = 0;
  int hosts = 0;
  std::vector<std::string> left_out;  ///< "FILE:LINE: WHY"
};

/// The vms.csv of a cloud (SkyPilot's schemas 5 to 8; columns in any order), in one or several files that
/// belong together. An empty or zero price: not for sale that way.
Result<CatalogOffers> read_skypilot(const std::string& cloud, const std::vector<CatalogFile>& files);

/// CSV with at least the columns provider,region,gpu,purchase,usd_per_h; the others of write_offers may be
/// missing or empty. An offer without as_of has the date of `file`, 0 for none. Owned hosts have purchase
/// owned, and their cost per hour or 0.
Result<std::vector<Offer>> read_offers(const CatalogFile& file);
std::string write_offers(const std::vector<Offer>& offers);

/// The same columns as an array of objects, with the price's age_h and whether the price is old.
std::string to_json(const std::vector<Offer>& offers, std::int64_t now_unix_s);

/// Prices printed in publications (catalog/offers.csv), in the areas of their tables.
const std::vector<Offer>& built_in_offers();

/// Prices are refreshed upstream every 7 hours; older ones may be wrong.
inline constexpr std::int64_t kFreshPriceS = 7 * 3600;

/// An undated price is not old: its age is not known.
inline bool is_old(const Offer& offer, std::int64_t now_unix_s) {
  return offer.as_of_unix_s > 0 && now_unix_s - offer.as_of_unix_s > kFreshPriceS;
}

/// Clocks, and dates without a time, may differ by this much.
inline constexpr std::int64_t kClockSlackS = 24 * 3600;

/// The date is wrong, or the clock here.
inline bool is_ahead(std::int64_t as_of_unix_s, std::int64_t now_unix_s) {
  return as_of_unix_s - now_unix_s > kClockSlackS;
}

/// "3 h", "12 days": how long ago.
std::string age_text(std::int64_t seconds);

/// "12 days old", or "dated 3 days ahead of this clock".
std::string dated_text(std::int64_t as_of_unix_s, std::int64_t now_unix_s);

/// The age of an offer's price: as dated_text(), or "undated".
std::string price_age_text(const Offer& offer, std::int64_t now_unix_s);

/// Filter for offers; an empty text: any.
struct OfferQuery {
  std::string provider;
  std::string region;
  std::string gpu;  ///< "none": machines without one
  std::optional<Purchase> purchase;
};

/// Sorted by price per GPU (per machine without one). If a word of the query fits no offer at all, the error
/// names the words that exist.
Result<std::vector<Offer>> select(const std::vector<Offer>& offers, const OfferQuery& query);

}  // namespace tw::market
