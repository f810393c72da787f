// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Which machines, how many of each. How fast a round is averaged depends on the number of peers at each site
/// alone; for fixed numbers, speed and price add up over the machines, so of two picks for a site the one
/// that is slower and dearer is never needed: dynamic programming over non-dominated picks loses nothing.
namespace tw {

/// A kind of machine that can be had.
struct Choice {
  std::size_t site = 0;
  double samples_per_s = 0;  ///< of a peer, on average while it is paid
  double usd_per_h = 0;
  int most = 0;          ///< peers
  int quota = -1;        ///< of Space::quotas; -1: none
  double quota_use = 1;  ///< of a peer
  int domain = 0;        ///< failure domain, below 64
};

/// Of a round.
struct Averaging {
  double seconds = 0;  ///< beside calculating
  double usd = 0;      ///< of traffic
};

struct Space {
  std::vector<Choice> choices;
  std::size_t sites = 0;
  int most_peers = 0;
  std::vector<double> quotas;  ///< limits that choices share
  int least_domains = 1;
  double samples_per_round = 0;
  bool delayed = false;       ///< a round is averaged while the next is calculated
  double usd_per_sample = 0;  ///< of reading data
  std::function<Averaging(const std::vector<int>& peers_by_site)> averaging;
  /// What so many peers or more take at least, wherever they are; for bounds.
  std::function<Averaging(int peers)> least;
};

struct Score {
  double samples_per_s = 0;
  double vm_usd_per_h = 0;
  double usd_per_sample = 0;  ///< of traffic and data

  double usd_per_h() const { return vm_usd_per_h + 3600 * samples_per_s * usd_per_sample; }

  double usd_per_million() const { return 1e6 * usd_per_h() / (3600 * samples_per_s); }
};

/// The less the better; infinite: not allowed. It must not rise when a plan becomes faster, and not fall when
/// its machines or samples become dearer.
using Objective = std::function<double(const Score&)>;

struct Selection {
  std::vector<int> counts;  ///< by choice
  Score score;
  double value = 0;
};

struct Effort {
  std::size_t steps = 12000;  ///< combinations of sites and counts that are looked at
  std::size_t kept = 40;      ///< picks for the peers of a site at most
};

struct SearchResult {
  std::vector<Selection>
      best;            ///< the best first, each of another combination of sites; empty: nothing allowed
  double bound = 0;    ///< no plan has a lesser value
  bool exact = false;  ///< best[0] is the optimum
  std::size_t steps = 0;

  /// How much better than best[0] a plan might be, as a share of it.
  double gap() const;
};

/// When the effort is spent before the search is over, the best plan is bettered by changes of single
/// machines as long as that helps, and gap() says how far from the optimum it might be.
SearchResult search(const Space& space, const Objective& objective, Effort effort = {});

/// Of given counts.
Score score_of(const Space& space, const std::vector<int>& counts);

/// Keeps quotas, limits and the minimum of failure domains.
bool allowed(const Space& space, const std::vector<int>& counts);

}  // namespace tw
