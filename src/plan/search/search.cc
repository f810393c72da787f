// SPDX-License-Identifier: Apache-2.0
#include "plan/search/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/check.h"
#include "plan/search/all_lost.h"
#include "plan/search/search_machines.h"
#include "plan/search/search_relaxation.h"

namespace tw::plan {
namespace {

constexpr double kNotAllowed = std::numeric_limits<double>::infinity();
constexpr std::size_t kRunnersUp = 8;
constexpr std::size_t kBlocks = 64;
constexpr std::size_t kMains = 32;
constexpr double kNextPrice = 1.04;
constexpr std::size_t kStepsOfMove = 8;
constexpr std::size_t kSitesOfStep = 256;  ///< a bound over more sites counts as several
constexpr double kTolerance = 1e-4;        ///< of the first pass
constexpr double kFloatTolerance = 1e-12;  ///< of the second: sums differ by their order

/// The best plan of each combination of sites so far, and a bound on plans not found yet.
class Findings {
 public:
  explicit Findings(const Space& space) : space_(space) {}

  /// In a pass, improvements by less than this part of the best value do not count.
  void begin_pass(double tolerance) {
    tolerance_ = tolerance;
    left_open_ = kNotAllowed;
  }

  double tolerance() const { return tolerance_; }

  /// Infinite until a plan is found.
  double best_value() const { return best_value_; }

  double threshold() const {
    return std::isinf(best_value_) ? best_value_ : best_value_ - tolerance_ * std::abs(best_value_);
  }

  /// True if no plan with such a bound is needed.
  bool hopeless(double bound) const { return !(bound < threshold()); }

  /// Plans of at least this value are skipped.
  void leave_open(double bound) { left_open_ = std::min(left_open_, bound); }

  /// After a pass, no plan has a smaller value.
  double bound() const { return std::min(threshold(), left_open_); }

  void note(Selection selection) {
    best_value_ = std::min(best_value_, selection.value);
    std::vector<bool> sites(space_.sites);
    for (std::size_t i = 0; i < selection.counts.size(); ++i)
      if (selection.counts[i] > 0) sites[space_.choices[i].site] = true;
    const auto known = best_of_.find(sites);
    if (known == best_of_.end() || selection.value < known->second.value)
      best_of_[sites] = std::move(selection);
  }

  bool empty() const { return best_of_.empty(); }

  const Selection& best() const {
    TW_CHECK(!empty());
    return std::min_element(best_of_.begin(), best_of_.end(),
                            [](const auto& a, const auto& b) { return a.second.value < b.second.value; })
        ->second;
  }

  /// The best and its runners-up.
  std::vector<Selection> best_first() const {
    std::vector<Selection> best;
    for (const auto& [sites, found] : best_of_) best.push_back(found);
    std::stable_sort(best.begin(), best.end(),
                     [](const Selection& a, const Selection& b) { return a.value < b.value; });
    if (best.size() > kRunnersUp) best.resize(kRunnersUp);
    return best;
  }

 private:
  const Space& space_;
  std::map<std::vector<bool>, Selection> best_of_;  ///< by combination of sites
  double best_value_ = kNotAllowed;
  double left_open_ = kNotAllowed;  ///< skipped plans have no smaller value
  double tolerance_ = 0;
};

class Search {
 public:
  Search(const Space& space, const Objective& objective, Effort effort, const SearchTold& told)
      : space_(space),
        objective_(objective),
        effort_(effort),
        told_(told),
        relaxation_(space),
        machines_(space, relaxation_, objective),
        most_sites_(space.most_sites > 0 ? std::min(space.most_sites, space.sites) : space.sites),
        plan_{std::vector<int>(space.sites), std::vector<bool>(space.sites, true), 0, 0},
        found_(space) {
    machines_.most_steps = effort.steps;
    for (std::size_t site = 0; site < space.sites; ++site)
      if (machines_.room_at(site) > 0) useful_.push_back(site);
    join_useful();
  }

  SearchResult run() {
    try_single_sites();
    if (space_.least_domains > 1) {
      try_spreading();
      improve();
    }
    SearchResult result;
    pass(kTolerance);
    result.bound = found_.bound();
    if (effort_.exact && !spent()) pass(kFloatTolerance);
    result.exact = effort_.exact && !spent();
    if (result.exact) result.bound = found_.best_value();
    result.steps = machines_.steps;
    result.best = found_.best_first();
    return result;
  }

 private:
  /// The sites beside the one with most peers. Sites with the longest averaging times with it come first, so
  /// that bounds become tight early.
  struct Neighbours {
    std::vector<std::size_t> order;
    std::vector<Gains> from;  ///< gains of all sites from each one on; in large markets from each block on
    std::size_t block = 1;
    std::vector<int> room;

    const Gains& gains(std::size_t at) const { return from[at / block]; }
  };

  bool spent() const { return machines_.steps >= effort_.steps; }

  Averaging averaging(const std::vector<SitePeers>& sites) {
    std::vector<int> peers(space_.sites);
    int all = 0;
    for (const SitePeers& here : sites) all += peers[here.site] = here.peers;
    return all > 1 ? space_.averaging(peers) : Averaging{};
  }

  /// Bound of plan_; `fixed`: the sums of its peers.
  double bound(const Relaxation::Sums& fixed, const Gains& open, int more, double known) {
    machines_.steps += 1 + useful_.size() / kSitesOfStep;
    Relaxation::Sums sums = fixed;
    relaxation_.add(sums, open, more);
    plan_.more = more;
    plan_.apart = sites_missing();
    const int had = std::accumulate(plan_.peers.begin(), plan_.peers.end(), 0);
    const Averaging round = had + more > 1 ? space_.least(plan_) : Averaging{};
    return std::max(known, relaxation_.least_value(objective_, sums, round, found_.threshold()));
  }

  void try_single_sites() {
    for (std::size_t site : useful_) {
      double best = kNotAllowed;
      for (int n = 1; n <= machines_.room_at(site); ++n) {
        const std::vector<SitePeers> here{{site, n}};
        if (auto found = machines_.rounded(here, averaging(here), best)) {
          best = found->value;
          found_.note(std::move(*found));
        }
      }
    }
  }

  /// If failure domains are required: tries the best single sites, each with single peers at the sites that
  /// suit it best.
  void try_spreading() {
    std::vector<std::tuple<double, std::size_t, int>> mains;
    for (std::size_t site : useful_) {
      std::tuple<double, std::size_t, int> best{kNotAllowed, site, 0};
      for (int n = 1; n <= machines_.room_at(site); ++n) {
        const std::vector<SitePeers> here{{site, n}};
        best = std::min(best, {machines_.rounded_value(here, averaging(here)), site, n});
      }
      if (std::get<0>(best) < kNotAllowed) mains.push_back(best);
    }
    std::sort(mains.begin(), mains.end());
    // The first few, then some of each price: cheap machines with expensive traffic hide others.
    std::size_t tried = 0;
    double last = -kNotAllowed;
    for (const auto& [value, site, n] : mains) {
      if (spent() || tried == kMains) return;
      if (tried >= kMains / 4 && value < last * kNextPrice) continue;
      spread(site, n);
      last = value;
      ++tried;
    }
  }

  void spread(std::size_t main, int peers) {
    std::vector<std::pair<double, std::size_t>> others;
    for (std::size_t site : useful_) {
      if (site == main) continue;
      machines_.steps += kStepsOfMove;
      const std::vector<SitePeers> both{{main, peers}, {site, 1}};
      others.emplace_back(machines_.rounded_value(both, averaging(both)), site);
    }
    std::sort(others.begin(), others.end());
    for (int here = 1; here <= std::min(machines_.room_at(main), peers + 2); ++here) {
      std::vector<SitePeers> sites{{main, here}};
      int domains = machines_.domains_at(sites.front());
      for (auto next = others.begin(); domains < space_.least_domains && next != others.end();
           ++next, ++domains)
        sites.push_back({next->second, 1});
      if (here + static_cast<int>(sites.size()) - 1 > space_.most_peers || sites.size() > most_sites_)
        continue;
      if (auto found = machines_.rounded(sites, averaging(sites), found_.best_value()))
        found_.note(std::move(*found));
    }
  }

  /// Moves peers of the best plan to other sites, one or all of a site, while that helps.
  void improve() {
    while (!found_.empty() && !spent()) {
      const Selection& best = found_.best();
      std::vector<int> peers(space_.sites);
      for (std::size_t i = 0; i < space_.choices.size(); ++i) peers[space_.choices[i].site] += best.counts[i];
      const double before = found_.best_value();
      for (std::size_t from = 0; from < peers.size(); ++from) {
        if (peers[from] == 0) continue;
        for (std::size_t to : useful_)
          for (int some : {1, peers[from]})
            if (to != from) try_move(peers, from, to, some);
      }
      if (found_.best_value() == before) return;
    }
  }

  void try_move(const std::vector<int>& peers, std::size_t from, std::size_t to, int some) {
    machines_.steps += kStepsOfMove;
    std::vector<SitePeers> sites;
    for (std::size_t site = 0; site < peers.size(); ++site) {
      const int here = peers[site] - (site == from ? some : 0) + (site == to ? some : 0);
      if (here > machines_.room_at(site)) return;
      if (here > 0) sites.push_back({site, here});
    }
    if (sites.size() > most_sites_) return;
    if (auto found = machines_.rounded(sites, averaging(sites), found_.best_value()))
      found_.note(std::move(*found));
  }

  /// True if their domains and these additional peers suffice.
  bool can_spread(int more) const {
    int domains = more;
    for (const SitePeers& here : task_) domains += machines_.domains_at(here);
    return domains >= space_.least_domains;
  }

  /// Number of sites beside those of plan_ that are needed for its failure domains.
  int sites_missing() const {
    if (space_.least_domains <= 1) return 0;
    int domains = space_.least_domains;
    for (std::size_t site : useful_) {
      const int here = plan_.peers[site];
      if (here > 0)
        domains -= plan_.open[site] ? machines_.most_domains_at(site) : machines_.domains_at({site, here});
    }
    return domains > 0 ? (domains + most_domains_ - 1) / most_domains_ : 0;
  }

  void rank_totals() {
    totals_.clear();
    for (int n = 1; n <= most_peers_; ++n) {
      plan_.most_each = n;
      totals_.emplace_back(bound(relaxation_.none(), everywhere_, n, -kNotAllowed), n);
    }
    std::sort(totals_.begin(), totals_.end());
  }

  /// Joins the choices of all useful sites.
  void join_useful() {
    Relaxation::Ranking all = relaxation_.ranking_of({});
    std::fill(plan_.open.begin(), plan_.open.end(), false);
    useful_room_ = 0;
    for (std::size_t site : useful_) {
      useful_room_ += machines_.room_at(site);
      most_domains_ = std::max(most_domains_, machines_.most_domains_at(site));
      relaxation_.merge(all, machines_.ranking_at(site));
      plan_.open[site] = true;
    }
    everywhere_ = relaxation_.gains_of(all);
    most_peers_ = static_cast<int>(all.back().size());
    from_.assign(space_.sites, std::nullopt);
    rank_totals();
  }

  /// Drops sites at which no peer can improve a plan.
  void drop_hopeless_sites() {
    const auto helps = [&](std::size_t site) {
      return std::any_of(totals_.begin(), totals_.end(), [&](const auto& total) {
        return !found_.hopeless(total.first) && !found_.hopeless(bound_with(site, total.second, total.first));
      });
    };
    const std::size_t before = useful_.size();
    std::erase_if(useful_, [&](std::size_t site) { return !helps(site); });
    if (useful_.size() < before) join_useful();
  }

  /// Bound of plans with this many peers, one of them at the site.
  double bound_with(std::size_t site, int peers, double known) {
    plan_.peers[site] = 1;
    plan_.most_each = peers;
    Relaxation::Sums sums = relaxation_.none();
    relaxation_.add(sums, machines_.gains_at(site), 1);
    const double least = bound(sums, everywhere_, peers - 1, known);
    plan_.peers[site] = 0;
    return least;
  }

  void pass(double tolerance) {
    found_.begin_pass(tolerance);
    drop_hopeless_sites();
    for (const auto& [bound, n] : totals_) {
      if (found_.hopeless(bound)) return;
      if (spent()) return found_.leave_open(bound);
      try_total(n, bound);
    }
  }

  /// Tries each site as the one with most peers.
  void try_total(int n, double known) {
    std::vector<std::pair<double, std::size_t>> mains;
    for (std::size_t site : useful_) mains.emplace_back(bound_with(site, n, known), site);
    std::sort(mains.begin(), mains.end());
    for (const auto& [bound, site] : mains) {
      if (found_.hopeless(bound)) break;
      try_main(site, n, bound);
    }
  }

  void try_main(std::size_t site, int n, double known) {
    const int sites = static_cast<int>(most_sites_);
    for (int here = std::min(n, machines_.room_at(site)); here * sites >= n; --here) {
      if (spent()) return found_.leave_open(known);
      main_ = site;
      task_ = {{site, here}};
      if (!can_spread(n - here)) continue;
      plan_.peers[site] = here;
      if (here == n) {
        try_machines(known);
      } else if (n - here <= useful_room_ - machines_.room_at(site)) {
        plan_.most_each = here;
        Relaxation::Sums sums = relaxation_.none();
        relaxation_.add(sums, machines_.gains_at(site), here);
        plan_.open[site] = false;
        // Most main sites end here, before their neighbours are ranked.
        if (const double rough = bound(sums, everywhere_, n - here, known); !found_.hopeless(rough))
          try_more(sums, 0, n - here, rough);
        plan_.open[site] = true;
      }
      plan_.peers[site] = 0;
    }
  }

  const Neighbours& neighbours() {
    auto& known = from_[main_];
    if (known) return *known;
    std::vector<std::tuple<double, double, std::size_t>> order;
    for (std::size_t site : useful_) {
      if (site == main_) continue;
      const Averaging round = averaging({{main_, 1}, {site, 1}});
      order.emplace_back(-round.seconds, -round.usd, site);
    }
    std::sort(order.begin(), order.end());
    machines_.steps += order.size() / 4;
    Neighbours made;
    made.block = 1 + order.size() / kBlocks;
    Relaxation::Ranking ranking = relaxation_.ranking_of({});
    int room = 0;
    for (std::size_t at = order.size(); at-- > 0;) {
      const std::size_t site = std::get<2>(order[at]);
      relaxation_.merge(ranking, machines_.ranking_at(site));
      made.order.push_back(site);
      if (at % made.block == 0) made.from.push_back(relaxation_.gains_of(ranking));
      made.room.push_back(room += machines_.room_at(site));
    }
    std::reverse(made.order.begin(), made.order.end());
    std::reverse(made.from.begin(), made.from.end());
    std::reverse(made.room.begin(), made.room.end());
    known = std::move(made);
    return *known;
  }

  void open_from(const Neighbours& all, std::size_t at) {
    std::fill(plan_.open.begin(), plan_.open.end(), false);
    for (std::size_t i = at; i < all.order.size(); ++i) plan_.open[all.order[i]] = true;
  }

  /// Adds `more` peers at neighbours from index `at` on.
  void try_more(const Relaxation::Sums& fixed, std::size_t at, int more, double known) {
    const Neighbours& all = neighbours();
    const int most_each = plan_.most_each;
    for (; at < all.order.size() && all.room[at] >= more; ++at) {
      open_from(all, at);
      known = bound(fixed, all.gains(at), more, known);
      if (found_.hopeless(known)) break;
      if (spent()) {
        found_.leave_open(known);
        break;
      }
      try_site(fixed, at, more, known);
      plan_.most_each = most_each;
    }
    std::fill(plan_.open.begin(), plan_.open.end(), false);
    for (std::size_t site : useful_) plan_.open[site] = true;
  }

  /// Puts some of them at the neighbour with index `at`.
  void try_site(const Relaxation::Sums& fixed, std::size_t at, int more, double known) {
    const Neighbours& all = neighbours();
    const std::size_t site = all.order[at];
    const int most = std::min({more, machines_.room_at(site), plan_.most_each - (site < main_ ? 1 : 0)});
    if (most < 1) return;
    const bool last = task_.size() + 1 == most_sites_;
    if (last && most < more) return;
    if (!last) {
      Relaxation::Sums sums = fixed;
      relaxation_.add(sums, machines_.gains_at(site), 1);
      plan_.peers[site] = 1;
      known = bound(sums, all.gains(at), more - 1, known);
      plan_.peers[site] = 0;
      if (found_.hopeless(known)) return;
    }
    for (int here = most; here >= (last ? more : 1); --here) {
      if (spent()) {
        found_.leave_open(known);
        break;
      }
      Relaxation::Sums sums = fixed;
      relaxation_.add(sums, machines_.gains_at(site), here);
      task_.push_back({site, here});
      plan_.peers[site] = here;
      if (can_spread(more - here)) {
        if (here == more)
          try_machines(known);
        else
          try_more(sums, at + 1, more - here, known);
      }
      plan_.peers[site] = 0;
      task_.pop_back();
    }
  }

  /// All sites have their peers: chooses the machines.
  void try_machines(double known) {
    const Averaging round = averaging(task_);
    Relaxation::Sums sums = relaxation_.none();
    for (const SitePeers& here : task_) relaxation_.add(sums, machines_.gains_at(here.site), here.peers);
    ++machines_.steps;
    if (told_ && effort_.steps > 0)
      told_(std::min(1.0, static_cast<double>(machines_.steps) / static_cast<double>(effort_.steps)));
    known = std::max(known, relaxation_.least_value(objective_, sums, round, found_.threshold()));
    if (found_.hopeless(known)) return;
    if (auto found = machines_.rounded(task_, round, found_.best_value())) found_.note(std::move(*found));
    if (found_.hopeless(known)) return;
    if (auto found = machines_.best(task_, round, found_.best_value(), found_.tolerance()))
      found_.note(std::move(*found));
    if (machines_.gave_up) found_.leave_open(known);
  }

  const Space& space_;
  const Objective& objective_;
  Effort effort_;
  const SearchTold& told_;
  Relaxation relaxation_;
  MachineSearch machines_;
  std::size_t most_sites_;
  int most_peers_ = 0;
  int most_domains_ = 1;                         ///< of a site
  int useful_room_ = 0;                          ///< room for peers at useful sites
  std::vector<std::size_t> useful_;              ///< sites
  Gains everywhere_;                             ///< of the useful sites
  std::vector<std::pair<double, int>> totals_;   ///< numbers of peers by their bounds
  std::vector<std::optional<Neighbours>> from_;  ///< by the site with most peers
  PartialPlan plan_;                             ///< the present partial plan
  std::vector<SitePeers> task_;                  ///< its fixed peers
  std::size_t main_ = 0;                         ///< the site with most of them
  Findings found_;
};

}  // namespace

double SearchResult::gap() const {
  if (best.empty() || exact) return 0;
  return std::max(0.0, (best.front().value - bound) / std::abs(best.front().value));
}

SearchResult search(const Space& space, const Objective& objective, Effort effort, const SearchTold& told) {
  return Search(space, objective, effort, told).run();
}

Score score_of(const Space& space, const MachineSums& machines, const Averaging& round) {
  const auto speed = [&](double samples_per_s, double averaging_s) {
    const double calc_s = std::max(space.samples_per_round / samples_per_s, round.calc_s);
    return space.samples_per_round / (space.delayed ? std::max(calc_s, averaging_s) : calc_s + averaging_s);
  };
  return {.samples_per_s = speed(machines.samples_per_s, round.seconds),
          .slow_samples_per_s = speed(machines.slow_samples_per_s, round.seconds * space.slow_averaging),
          .start_h = machines.start_h,
          .vm_usd_per_h = machines.usd_per_h,
          .usd_per_sample = space.usd_per_sample + round.usd / space.samples_per_round};
}

MachineSums sums_of(const Space& space, const std::vector<int>& counts) {
  MachineSums sums;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Choice& one = space.choices[i];
    sums.samples_per_s += counts[i] * one.samples_per_s;
    sums.slow_samples_per_s += counts[i] * one.slow_samples_per_s;
    sums.usd_per_h += counts[i] * one.usd_per_h;
    if (counts[i] > 0) sums.start_h = std::max(sums.start_h, one.start_h);
  }
  return sums;
}

Score score_of(const Space& space, const std::vector<int>& counts) {
  std::vector<int> peers(space.sites);
  for (std::size_t choice = 0; choice < counts.size(); ++choice)
    peers[space.choices[choice].site] += counts[choice];
  const int all = std::accumulate(peers.begin(), peers.end(), 0);
  Score score = score_of(space, sums_of(space, counts), all > 1 ? space.averaging(peers) : Averaging{});
  settle(space, counts, score);
  return score;
}

void settle(const Space& space, const std::vector<int>& counts, Score& score) {
  score.usd_per_sample += dearer_reads_usd(space, counts);
  const double slower = checkpoints_of(space, counts).wall_per_work();
  score.samples_per_s /= slower;
  score.slow_samples_per_s /= slower;
}

double dearer_reads_usd(const Space& space, const std::vector<int>& counts) {
  double usd = 0;
  double samples_per_s = 0;
  for (std::size_t choice = 0; choice < counts.size(); ++choice) {
    const double speed = counts[choice] * space.choices[choice].samples_per_s;
    usd += speed * space.choices[choice].usd_per_sample;
    samples_per_s += speed;
  }
  return samples_per_s > 0 ? usd / samples_per_s : 0;
}

bool allowed(const Space& space, const std::vector<int>& counts) {
  std::vector<double> used(space.quotas.size());
  std::set<int> domains;
  int peers = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Choice& choice = space.choices[i];
    if (counts[i] > choice.most) return false;
    peers += counts[i];
    if (counts[i] > 0) domains.insert(choice.domain);
    for (const int quota : choice.quotas)
      used[static_cast<std::size_t>(quota)] += counts[i] * choice.quota_use;
  }
  for (std::size_t q = 0; q < used.size(); ++q)
    if (used[q] > space.quotas[q] + kQuotaRounding) return false;
  return peers > 0 && peers <= space.most_peers && static_cast<int>(domains.size()) >= space.least_domains;
}

}  // namespace tw::plan
