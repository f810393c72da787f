// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/search/search.h"
#include "plan/search/search_relaxation.h"

/// Which machines at each site, for fixed numbers of peers: with averaging known, a knapsack problem of speed
/// against price, solved by branch and bound on the number of each choice.
namespace tw::plan {

/// Number of peers at a site.
struct SitePeers {
  std::size_t site = 0;
  int peers = 0;
};

class MachineSearch {
 public:
  MachineSearch(const Space& space, const Relaxation& relaxation, const Objective& objective);

  const Gains& gains_at(std::size_t site) const { return sites_[site].gains; }

  const Relaxation::Ranking& ranking_at(std::size_t site) const { return sites_[site].ranking; }

  /// Largest number of peers.
  int room_at(std::size_t site) const { return sites_[site].room; }

  /// Failure domains over which this many peers can be spread.
  int domains_at(const SitePeers& here) const { return std::min(here.peers, sites_[here.site].domains); }

  int most_domains_at(std::size_t site) const { return sites_[site].domains; }

  /// Machines that the relaxation takes at one of the slopes, if allowed and of a smaller value than `below`.
  std::optional<Selection> rounded(const std::vector<SitePeers>& sites, const Averaging& round, double below);

  /// Value of the machines that the relaxation takes, even if not allowed or accepted.
  double rounded_value(const std::vector<SitePeers>& sites, const Averaging& round) const;

  /// The best with a value below `below` - `tolerance` * |value|; its work is counted in `steps`.
  std::optional<Selection> best(const std::vector<SitePeers>& sites, const Averaging& round, double below,
                                double tolerance);

  /// best() gave up at most_steps: a smaller value may exist.
  std::size_t steps = 0;
  std::size_t most_steps = 0;
  bool gave_up = false;

 private:
  struct Site {
    std::vector<std::size_t> choices;
    std::vector<Gains> from;  ///< of the choices from each one on; empty until best() needs them
    Relaxation::Ranking ranking;
    Gains gains;
    int room = 0;
    int domains = 0;
  };

  struct Place {
    std::size_t site = 0;    ///< of the task's
    std::size_t choice = 0;  ///< of the site's
    int left = 0;            ///< peers still to place at the site
  };

  void settle(Selection& selection) const;
  Score rounded_score(const std::vector<SitePeers>& sites, const Averaging& round, std::size_t slope) const;
  bool accepted(const std::vector<int>& counts);
  void split(Site& site) const;
  void take(std::size_t choice, int peers);
  bool has_room(std::size_t choice, int peers) const;
  double bound_at(const Place& place);
  void descend(Place place);
  void branch(const Place& place);
  void conclude();
  double threshold() const;

  const Space& space_;
  const Relaxation& relaxation_;
  const Objective& objective_;
  std::vector<Site> sites_;

  const std::vector<SitePeers>* task_ = nullptr;
  Averaging round_;
  std::vector<int> counts_;  ///< by choice
  std::vector<double> used_;
  std::vector<int> of_domain_;
  int domains_ = 0;
  int domains_later_ = 0;  ///< most domains that later sites can add
  MachineSums sums_;
  double below_ = 0;
  double tolerance_ = 0;
  std::optional<Selection> found_;
};

}  // namespace tw::plan
