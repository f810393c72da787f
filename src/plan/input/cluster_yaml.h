// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/input/named_work.h"
#include "plan/model/cost.h"

namespace tw::plan {

/// CLUSTER.yaml: which machines train what, and at which prices.
struct ClusterFile : NamedWork {
  std::vector<PeerGroup> peers;
  std::vector<market::Purchase> purchases;  ///< of groups that say nothing; empty: any
  std::vector<market::Offer> own_prices;    ///< they go before the catalog's

  bool operator==(const ClusterFile&) const = default;
};

Result<ClusterFile> read_cluster(const std::string& file, std::string_view text);

}  // namespace tw::plan
