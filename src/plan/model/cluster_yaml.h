// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/model/cost.h"

namespace tw {

/// CLUSTER.yaml: what trains where, and at which prices.
struct ClusterFile {
  std::string model;    ///< of the catalog; or
  std::string profile;  ///< a file with a model of one's own, relative to this one
  double target_batch_size = 0;
  std::vector<PeerGroup> peers;
  Pattern pattern = Pattern::tradewind;
  double bytes_per_param = 2;  ///< by the codec
  int streams = 16;
  bool delayed = false;
  std::optional<Purchase> purchase;
  std::optional<double> data_usd_per_gb;
  std::vector<Offer> own_prices;  ///< they go before the catalog's

  bool operator==(const ClusterFile&) const = default;
};

Result<ClusterFile> read_cluster(const std::string& file, std::string_view text);

}  // namespace tw
