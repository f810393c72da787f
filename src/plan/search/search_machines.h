// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/search/search.h"
#include "plan/search/search_relaxation.h"

/// Which machines at each site, once the number of peers at each is fixed: with averaging known it is a
/// knapsack problem of speed against price, solved by branch and bound on the numbers of each choice.
namespace tw::plan {

/// So many peers at a site.
struct SitePeers {
  std::size_t site = 0;
  int peers = 0;
};

class MachineSearch {
 public:
  MachineSearch(const Space& space, const Relaxation& relaxation, const Objective& objective);

  const Gains& gains_at(std::size_t site) const { return sites_[site].gains; }

  const Relaxation::Ranking& ranking_at(std::size_t site) const { return sites_[site].ranking; }

  /// At most so many peers.
  int room_at(std::size_t site) const { return sites_[site].room; }

  /// Failure domains that so many peers there can be spread over.
  int domains_at(const SitePeers& here) const { return std::min(here.peers, sites_[here.site].domains); }

  int most_domains_at(std::size_t site) const { return sites_[site].domains; }

  /// Those that the relaxation takes at one of the slopes, if they are allowed and have a lesser value than
  /// `below`.
  std::optional<Selection> rounded(const std::vector<SitePeers>& sites, const Averaging& round, double below);

  /// Value of the machines that the relaxation takes, allowed or not.
  double rounded_value(const std::vector<SitePeers>& sites, const Averaging& round) const;

  /// The best of a lesser value than `below` - `tolerance` * |value|; what it looks at is counted in `steps`.
  std::optional<Selection> best(const std::vector<SitePeers>& sites, const Averaging& round, double below,
                                double tolerance);

  /// best() gave up when as many were reached: something of a lesser value may be left.
  std::size_t steps = 0;
  std::size_t most_steps = 0;
  bool gave_up = false;

 private:
  struct Site {
    std::vector<std::size_t> choices;
    std::vector<Gains> from;  ///< of the choices from each on; empty until best() needs them
    Relaxation::Ranking ranking;
    Gains gains;
    int room = 0;
    int domains = 0;
  };

  struct Place {
    std::size_t site = 0;    ///< of the task's
    std::size_t choice = 0;  ///< of the site's
    int left = 0;            ///< peers for the site
  };

  void add_dearer_reads(Selection& selection) const;
  Score rounded_score(const std::vector<SitePeers>& sites, const Averaging& round, std::size_t slope) const;
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
  int domains_later_ = 0;  ///< that later sites can add at most
  double samples_per_s_ = 0;
  double usd_per_h_ = 0;
  double below_ = 0;
  double tolerance_ = 0;
  std::optional<Selection> found_;
};

}  // namespace tw::plan
