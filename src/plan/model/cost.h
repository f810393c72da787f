// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "market/catalog.h"
#include "market/tariffs.h"
#include "plan/model/throughput.h"

/// Cost of a cluster while it trains.
namespace tw::plan {

/// Which store samples are read from.
struct DataSource {
  std::optional<market::DataStore> store;  ///< nothing: one that charges by the GB alone
  double usd_per_gb = 0.01;                ///< of that one; the default is Backblaze B2's
  bool named = false;                      ///< else the default stands in, and an assumption says so

  bool operator==(const DataSource&) const = default;
};

struct Prices {
  std::vector<market::Offer> own;  ///< override all others
  const std::vector<market::Offer>& offers = market::built_in_offers();
  const market::Tariffs& tariffs = market::Tariffs::built_in();
  DataSource data;
  std::vector<market::Purchase> purchases;  ///< of groups that say nothing; empty: any. The cheapest counts
};

/// Estimates with 80 % ranges, which come from the throughput; prices are taken as exact.
struct Cost {
  std::optional<Estimate> vm_usd_per_h;  ///< nothing: there are machines without a price
  Estimate egress_usd_per_h;
  Estimate data_usd_per_h;
  std::optional<Estimate> total_usd_per_h;          ///< nothing, as above
  std::optional<Estimate> usd_per_million_samples;  ///< nothing, as above
  std::vector<std::string> unpriced;                ///< machines without a price, and where to get it
  std::vector<std::string> assumptions;             ///< prices used
};

/// The user's own offer, else the cheapest one for one peer of the group that is paid for as the group says:
/// in its site, an area around it, or a region of it if it is an area. A machine with several such GPUs
/// counts in part.
std::optional<market::Offer> offer_for(const PeerGroup& group, const Prices& prices);

/// Traffic and requests of one sample that a peer at a site reads.
double data_usd_per_sample(const Workload& workload, const DataSource& data, const market::Tariffs& tariffs,
                           const market::Site& reader);

/// The store and the prices that were taken.
std::string data_assumption(const Workload& workload, const DataSource& data);

/// Whose traffic counts as free because nobody knows its tariff.
std::string uncharged_text(const std::string& provider);

/// A machine on premises, or one said to be owned, costs nothing unless an offer gives its price. Without a
/// price of any other machine there is no total.
Cost cost_of(const Workload& workload, const std::vector<PeerGroup>& peers, const Prediction& prediction,
             const Prices& prices = {});

}  // namespace tw::plan
