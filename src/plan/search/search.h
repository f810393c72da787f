// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Which machines, and how many of each: branch and bound. Averaging time depends only on the number of peers
/// at each site, so the search branches over these numbers. For fixed numbers, speed and price add up over
/// the machines, which leaves a knapsack problem (plan/search/search_machines.h).
namespace tw::plan {

/// Tolerance of quotas: rounding error of sums over machines.
inline constexpr double kQuotaRounding = 1e-9;

/// A kind of machine that is available.
struct Choice {
  std::size_t site = 0;
  double samples_per_s = 0;  ///< of a peer, averaged over its paid time
  double usd_per_h = 0;
  double slow_samples_per_s = 0;  ///< with as bad luck as a plan must bear; 0 of all choices: not asked
  double start_h = 0;             ///< from the request until it works
  double usd_per_sample = 0;      ///< of reading data, beyond Space::usd_per_sample
  int most = 0;                   ///< peers
  std::vector<int> quotas{};      ///< of Space::quotas
  double quota_use = 1;           ///< of a peer
  int domain = 0;                 ///< failure domain, from 0
  double lost_per_h = 0;          ///< taken without a notice long enough for a checkpoint
  double away = 0;                ///< share of the time without the state: waited for, or joining
  double struck = 0;              ///< chance that a shock of its domain takes it, without such a notice
};

/// Communication time and cost of one round.
struct Averaging {
  double seconds = 0;  ///< beside calculating
  double calc_s = 0;   ///< least time of calculating
  double usd = 0;      ///< of traffic
};

/// A partial plan: peers whose numbers are fixed, and more of them at any open sites.
struct PartialPlan {
  std::vector<int> peers;  ///< by site
  std::vector<bool> open;  ///< sites that may get more peers; an open site with peers: more than these
  int more = 0;
  int most_each = 0;  ///< peers of an open site, at most
  int apart = 0;      ///< at least this many of the others are at that many sites without peers so far
};

/// Machines together.
struct MachineSums {
  double samples_per_s = 0, slow_samples_per_s = 0;
  double usd_per_h = 0;
  double start_h = 0;  ///< until all work
};

struct Score {
  double samples_per_s = 0;
  double slow_samples_per_s = 0;  ///< Choice::slow_samples_per_s
  double start_h = 0;
  double vm_usd_per_h = 0;
  double usd_per_sample = 0;  ///< of traffic and data

  double usd_per_h() const { return vm_usd_per_h + 3600 * samples_per_s * usd_per_sample; }
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
  double slow_averaging = 1;  ///< with that bad luck it takes so many times as long
  double checkpoint_s = 0;    ///< time to write one; 0: the loss of all peers at once is not counted
  double shocks_per_h = 0;    ///< of each failure domain
  double usd_per_sample = 0;  ///< of reading data, where that costs least
  std::function<Averaging(const std::vector<int>& peers_by_site)> averaging;
  /// Lower bound for every completion of the plan; a tighter one makes the search quicker. If peers are to be
  /// added, some site is open.
  std::function<Averaging(const PartialPlan& plan)> least;
  /// Whether the plan may be taken, asked of each that has a smaller value than all before; empty: any may.
  std::function<bool(const std::vector<int>& counts)> accepts;
  /// A limit that slower plans keep, so that no objective can say it: asked of each complete plan; empty:
  /// none.
  std::function<bool(const Score& score)> keeps;
};

/// The smaller the better; infinite: not allowed. It must not rise when a plan becomes faster, nor fall when
/// its machines or samples become more expensive.
using Objective = std::function<double(const Score&)>;

struct Selection {
  std::vector<int> counts;  ///< by choice
  Score score;
  double value = 0;
};

struct Effort {
  std::size_t steps = 600'000;  ///< bounds to compute, one to three microseconds each
  bool exact = true;            ///< false: improvements of less than 0.01 % are not searched for
};

struct SearchResult {
  /// Best first, each with another combination of sites; empty: nothing is allowed. Only the first is proven.
  std::vector<Selection> best;
  double bound = 0;    ///< no plan has a smaller value
  bool exact = false;  ///< best[0] is the optimum, up to rounding
  std::size_t steps = 0;

  /// Largest possible improvement on best[0], as a share of its value.
  double gap() const;
};

/// Hears at each step which share of them is done; may be empty.
using SearchTold = std::function<void(double share)>;

/// First leaves out what could be better by less than 0.01 %, then nothing. When the effort is spent before,
/// gap() says how far from the optimum the best plan might be.
SearchResult search(const Space& space, const Objective& objective, Effort effort = {},
                    const SearchTold& told = {});

/// Score of given counts.
Score score_of(const Space& space, const std::vector<int>& counts);

/// Score of machines with these sums, averaged so, that read where it costs least: a bound where it does not.
Score score_of(const Space& space, const MachineSums& machines, const Averaging& round);

/// The sums of given counts.
MachineSums sums_of(const Space& space, const std::vector<int>& counts);

/// What depends on which machines they are, not on their sums: dearer reads, and the time for checkpoints and
/// for work done again (plan/search/all_lost.h). Never makes a plan better.
void settle(const Space& space, const std::vector<int>& counts, Score& score);

/// What a sample costs beyond Space::usd_per_sample, on average over machines by their speeds.
double dearer_reads_usd(const Space& space, const std::vector<int>& counts);

/// Keeps quotas, limits and the minimum of failure domains.
bool allowed(const Space& space, const std::vector<int>& counts);

}  // namespace tw::plan
