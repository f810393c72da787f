// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "market/site.h"

/// Prices of moving and storing bytes. GB = 1e9 bytes; the sender pays.
namespace tw::market {

/// Classes of traffic that clouds price differently (Erben et al. 2024, table 1).
enum class Traffic {
  inside,  ///< of one zone, or of one region where no zones are named
  inter_zone,
  inter_region_us,
  inter_region_eu,
  inter_region_asia,
  inter_region_aus,
  any_to_or_from_aus,
  between_continents,
  internet,  ///< to another provider
};

std::string_view to_string(Traffic traffic);

Traffic traffic_between(const Site& from, const Site& to);

/// Price of a GB from this many GB a month on.
struct TariffStep {
  double from_gb = 0;
  double usd_per_gb = 0;

  bool operator==(const TariffStep&) const = default;
};

struct Tariff {
  std::vector<TariffStep> steps;  ///< the first from 0 GB, rising
  std::string source;

  bool operator==(const Tariff&) const = default;
};

/// A place to read training data from.
struct DataStore {
  std::string name;
  std::string site;  ///< provider[:region]: a read is traffic from there; empty: one price for all readers
  double read_usd_per_gb = 0;
  std::optional<double> stored_usd_per_gb_month{};  ///< nothing: not known; so is the next
  std::optional<double> usd_per_million_reads{};    ///< GET, HEAD
  std::optional<double> usd_per_million_writes{};   ///< PUT, POST, LIST
  std::string source;

  bool operator==(const DataStore&) const = default;
};

class Tariffs {
 public:
  /// Tariffs of the built-in catalog.
  static const Tariffs& built_in();

  /// CSV with the columns provider,traffic,from_gb,usd_per_gb,source,as_of: traffic as to_string writes it,
  /// the steps of a tariff in rising order. Rows replace existing ones of the same kind.
  Status add_classes(const std::string& file, std::string_view text);

  /// CSV with the columns from,to,usd_per_gb,source,as_of, where classes are too coarse. from: a region
  /// (aws:us-east-1); to: a region, an area of a provider (gcp:aus), a provider, an area of any other
  /// provider (*:aus), or * for any other provider. The narrowest row counts.
  Status add_regions(const std::string& file, std::string_view text);

  /// CSV with the columns
  /// name,site,read_usd_per_gb,stored_usd_per_gb_month,usd_per_million_reads,
  /// usd_per_million_writes,source,as_of.
  Status add_stores(const std::string& file, std::string_view text);

  /// USD per GB sent from one site to the other, after `sent_gb` of this kind in the month; 0 inside a zone
  /// and for providers that charge nothing. A provider without a row pays as its own hardware does: nothing.
  double usd_per_gb(const Site& from, const Site& to, double sent_gb = 0) const;

  /// USD for the GB from sent_gb to sent_gb + gb.
  double usd(const Site& from, const Site& to, double gb, double sent_gb = 0) const;

  /// There is a price of what the site sends: a row of its provider, or the hardware is one's own.
  bool knows(const Site& from) const;

  /// The row that applies; nullptr if nothing is charged.
  const Tariff* tariff(const Site& from, const Site& to) const;

  /// "b2" (the paper's object store), "s3:us-east-1"; the error lists the existing ones.
  Result<DataStore> store(const std::string& name) const;

  /// USD per GB that a peer at a site reads from a store; 0 in the store's region, whatever the zone.
  double read_usd_per_gb(const DataStore& store, const Site& reader) const;

  /// USD per GB that a peer writes into a store, charged by the peer's provider; 0 in the store's region.
  double write_usd_per_gb(const Site& writer, const DataStore& store) const;

 private:
  using Key = std::pair<std::string, std::string>;

  std::map<Key, Tariff> classes_;  ///< by provider and traffic
  std::map<Key, Tariff> regions_;  ///< by the texts of add_regions
  std::map<std::string, DataStore> stores_;
};

}  // namespace tw::market
