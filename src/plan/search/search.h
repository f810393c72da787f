// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Which machines, how many of each: branch and bound. How fast a round is averaged depends on the number of
/// peers at each site alone, so the search branches over these numbers; for fixed numbers, speed and price
/// add up over the machines, which leaves a knapsack problem (plan/search/search_machines.h).
namespace tw::plan {

/// Quotas are compared with sums of machines, which are off by so much at most.
inline constexpr double kQuotaRounding = 1e-9;

/// A kind of machine that can be had.
struct Choice {
  std::size_t site = 0;
  double samples_per_s = 0;  ///< of a peer, on average while it is paid
  double usd_per_h = 0;
  double usd_per_sample = 0;  ///< of reading data, beyond Space::usd_per_sample
  int most = 0;               ///< peers
  int quota = -1;             ///< of Space::quotas; -1: none
  double quota_use = 1;       ///< of a peer
  int domain = 0;             ///< failure domain, from 0
};

/// Communication time and cost of one round.
struct Averaging {
  double seconds = 0;  ///< beside calculating
  double calc_s = 0;   ///< calculating lasts at least so long
  double usd = 0;      ///< of traffic
};

/// A plan in work: peers whose numbers are fixed, and more of them at any open sites.
struct PartialPlan {
  std::vector<int> peers;  ///< by site
  std::vector<bool> open;  ///< sites that may get some of the others; of a site with peers: more than these
  int more = 0;
  int most_each = 0;  ///< of an open site
  int apart = 0;      ///< of the others, at least so many are at as many sites that have no peers yet
};

struct Space {
  std::vector<Choice> choices;
  std::size_t sites = 0;
  std::size_t most_sites = 0;  ///< 0: any number
  int most_peers = 0;
  std::vector<double> quotas;  ///< limits that choices share
  int least_domains = 1;
  double samples_per_round = 0;
  bool delayed = false;       ///< a round is averaged while the next is calculated
  double usd_per_sample = 0;  ///< of reading data, where that costs least
  std::function<Averaging(const std::vector<int>& peers_by_site)> averaging;
  /// What every completion of the plan takes at least, for bounds; the tighter the quicker is the search.
  /// Where peers are to be added some site is open.
  std::function<Averaging(const PartialPlan& plan)> least;
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
  std::size_t steps = 600'000;  ///< bounds that are computed, of one to three microseconds each
  bool exact = true;            ///< false: what is better by less than 0.01 % is not looked for
};

struct SearchResult {
  /// The best first, each of another combination of sites; empty: nothing allowed. Only the first is proven.
  std::vector<Selection> best;
  double bound = 0;    ///< no plan has a lesser value
  bool exact = false;  ///< best[0] is the optimum, but for rounding
  std::size_t steps = 0;

  /// How much better than best[0] a plan might be, as a share of it.
  double gap() const;
};

/// First leaves out what could be better by less than 0.01 %, then nothing. When the effort is spent before,
/// gap() says how far from the optimum the best plan might be.
SearchResult search(const Space& space, const Objective& objective, Effort effort = {});

/// Score of given counts.
Score score_of(const Space& space, const std::vector<int>& counts);

/// Score of machines with these sums, averaged so, that read where it costs least: a bound where it does not.
Score score_of(const Space& space, double samples_per_s, double usd_per_h, const Averaging& round);

/// What a sample costs beyond Space::usd_per_sample, on average over machines by their speeds.
double dearer_reads_usd(const Space& space, const std::vector<int>& counts);

/// Keeps quotas, limits and the minimum of failure domains.
bool allowed(const Space& space, const std::vector<int>& counts);

}  // namespace tw::plan
