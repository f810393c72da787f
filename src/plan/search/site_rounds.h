// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "market/tariffs.h"
#include "plan/model/round_time.h"
#include "plan/search/search.h"

namespace tw::plan {

/// Time and cost of averaging by the number of peers at each site: of whole plans, and lower bounds for all
/// completions of a partial plan.
class SiteRounds {
 public:
  /// One peer of each site.
  SiteRounds(Workload workload, std::vector<PeerGroup> sites, const market::NetworkProfile& network,
             const market::Tariffs& tariffs, const HivemindLaw& law = HivemindLaw::built_in());

  /// Each combination is computed once.
  Averaging of(const std::vector<int>& peers);

  Averaging least(const PartialPlan& plan) const;

 private:
  struct Partial;

  /// Half of what each peer sends when there are very many.
  double mb() const;

  double between_usd(std::size_t a, std::size_t b) const { return usd_per_gb_[a][b] + usd_per_gb_[b][a]; }

  Partial partial_of(const PartialPlan& plan) const;
  double least_rtt_s(const Partial& plan) const;
  RoundParts least_flat(const Partial& plan) const;
  RoundParts least_by_sites(const Partial& plan) const;
  RoundParts least_of_others(const Partial& plan) const;
  Averaging hivemind(const std::vector<int>& peers) const;
  Averaging least_hivemind(const Partial& plan) const;
  Averaging hivemind_averaging(const HivemindLoad& load, double usd) const;
  HivemindLoad load_of_fixed(const Partial& plan) const;
  double least_flat_usd(const Partial& plan) const;

  Workload workload_;
  std::vector<PeerGroup> sites_;
  Lines lines_;
  std::vector<std::vector<double>> rtt_s_;
  std::vector<std::vector<double>> usd_per_gb_;
  std::vector<double> best_line_;  ///< of each site: bytes/s to or from any
  std::vector<double> least_usd_;  ///< of each site: USD per GB to another and back
  HivemindLaw law_;
  std::vector<HivemindLoad> hosts_;           ///< of each site's peers
  std::vector<std::vector<double>> streams_;  ///< between peers of two sites
  std::map<std::vector<int>, Averaging> known_;
};

}  // namespace tw::plan
