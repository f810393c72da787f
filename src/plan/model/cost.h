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

struct Prices {
  std::vector<market::Offer> own;  ///< override all others
  const std::vector<market::Offer>& offers = market::built_in_offers();
  const market::Tariffs& tariffs = market::Tariffs::built_in();
  double data_usd_per_gb = 0.01;             ///< of the store that samples are read from (Backblaze B2)
  std::optional<market::Purchase> purchase;  ///< nothing: the cheapest
};

/// Estimates with 80 % ranges, which come from the throughput; prices are taken as exact.
struct Cost {
  Estimate vm_usd_per_h;
  Estimate egress_usd_per_h;
  Estimate data_usd_per_h;
  Estimate total_usd_per_h;
  Estimate usd_per_million_samples;
  std::vector<std::string> assumptions;  ///< prices used, and machines without one
};

/// The user's own offer, else the cheapest one for one peer of the group, in its site or an area around it. A
/// machine with several such GPUs counts in part.
std::optional<market::Offer> offer_for(const PeerGroup& group, const Prices& prices);

/// Machines without an offer count as free, and the assumptions say so.
Cost cost_of(const Workload& workload, const std::vector<PeerGroup>& peers, const Prediction& prediction,
             const Prices& prices = {});

}  // namespace tw::plan
