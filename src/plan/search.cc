// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

namespace tw {
namespace {

constexpr double kNotAllowed = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  ///< of quotas, which are sums
constexpr std::size_t kRunnersUp = 8;

/// Machines for the peers of one site, or of several.
struct Pick {
  double samples_per_s = 0;
  double usd_per_h = 0;
  std::vector<double> used;                                     ///< of each quota
  std::uint64_t domains = 0;                                    ///< where least_domains asks for them
  std::vector<std::pair<std::uint16_t, std::uint16_t>> counts;  ///< choice, peers
};

using Picks = std::vector<Pick>;

bool at_least_as_good(const Pick& a, const Pick& b) {
  if (a.samples_per_s < b.samples_per_s || a.usd_per_h > b.usd_per_h) return false;
  if ((a.domains & b.domains) != b.domains) return false;
  for (std::size_t q = 0; q < a.used.size(); ++q)
    if (a.used[q] > b.used[q]) return false;
  return true;
}

/// The others are never needed. Cheap ones first.
void drop_dominated(Picks& picks) {
  std::sort(picks.begin(), picks.end(), [](const Pick& a, const Pick& b) {
    return a.usd_per_h != b.usd_per_h ? a.usd_per_h < b.usd_per_h : a.samples_per_s > b.samples_per_s;
  });
  Picks kept;
  for (Pick& one : picks) {
    const auto better = [&](const Pick& other) { return at_least_as_good(other, one); };
    // Without side constraints the last that was kept is the fastest of all cheaper ones.
    const bool plain = one.used.empty() && one.domains == 0;
    const bool dominated =
        plain ? !kept.empty() && better(kept.back()) : std::any_of(kept.begin(), kept.end(), better);
    if (!dominated) kept.push_back(std::move(one));
  }
  picks = std::move(kept);
}

/// Evenly over the prices; true when something was lost.
bool thin(Picks& picks, std::size_t kept) {
  if (picks.size() <= kept) return false;
  Picks some;
  for (std::size_t i = 0; i < kept; ++i)
    some.push_back(std::move(picks[i * (picks.size() - 1) / (kept - 1)]));
  picks = std::move(some);
  return true;
}

Score score_of_round(const Space& space, const Pick& pick, const Averaging& round) {
  Score score{.vm_usd_per_h = pick.usd_per_h};
  const double calc_s = space.samples_per_round / pick.samples_per_s;
  score.samples_per_s =
      space.samples_per_round / (space.delayed ? std::max(calc_s, round.seconds) : calc_s + round.seconds);
  score.usd_per_sample = space.usd_per_sample + round.usd / space.samples_per_round;
  return score;
}

class Search {
 public:
  Search(const Space& space, const Objective& objective, Effort effort)
      : space_(space), objective_(objective), effort_(effort), peers_(space.sites) {
    for (std::size_t site = 0; site < space_.sites; ++site) at_.push_back(picks_at(site));
    for (int n = 0; n <= space_.most_peers; ++n) least_.push_back(n < 2 ? Averaging{} : space_.least(n));
    order_sites();
    relax();
  }

  SearchResult run() {
    const double unlimited_bound = std::min(alone(), bound({none()}, 0, space_.most_peers));
    // All single sites, then all pairs, and so on, until no larger set can be better.
    for (std::size_t sites = 1; sites <= space_.sites && !spent(); ++sites) {
      reached_ = false;
      extend({none()}, {0, sites, space_.most_peers});
      if (!reached_) break;
      if (sites == 1) drop_hopeless();
    }
    SearchResult result{.exact = !spent() && !thinned_, .steps = steps_};
    if (!result.exact) improve();
    for (auto& [sites, found] : found_) result.best.push_back(found);
    std::stable_sort(result.best.begin(), result.best.end(),
                     [](const Selection& a, const Selection& b) { return a.value < b.value; });
    if (result.best.size() > kRunnersUp) result.best.resize(kRunnersUp);
    result.bound = result.exact ? best_value_ : std::min(best_value_, unlimited_bound);
    return result;
  }

 private:
  struct Step {
    std::size_t from = 0;   ///< of order_
    std::size_t sites = 0;  ///< yet to be added
    int peers = 0;          ///< yet to be had
  };

  Pick none() const { return {.used = std::vector<double>(space_.quotas.size()), .counts = {}}; }

  bool spent() const { return steps_ >= effort_.steps; }

  bool fits(const Pick& pick) const {
    for (std::size_t q = 0; q < pick.used.size(); ++q)
      if (pick.used[q] > space_.quotas[q] + kRounding) return false;
    return true;
  }

  Pick with(Pick pick, std::size_t choice, int count) const {
    if (count == 0) return pick;
    const Choice& added = space_.choices[choice];
    pick.samples_per_s += count * added.samples_per_s;
    pick.usd_per_h += count * added.usd_per_h;
    if (added.quota >= 0) pick.used[static_cast<std::size_t>(added.quota)] += count * added.quota_use;
    if (space_.least_domains > 1) pick.domains |= std::uint64_t{1} << added.domain;
    pick.counts.emplace_back(choice, count);
    return pick;
  }

  static Pick both(const Pick& a, const Pick& b) {
    Pick sum = a;
    sum.samples_per_s += b.samples_per_s;
    sum.usd_per_h += b.usd_per_h;
    for (std::size_t q = 0; q < sum.used.size(); ++q) sum.used[q] += b.used[q];
    sum.domains |= b.domains;
    sum.counts.insert(sum.counts.end(), b.counts.begin(), b.counts.end());
    return sum;
  }

  /// By the number of peers, from none.
  std::vector<Picks> picks_at(std::size_t site) {
    std::vector<Picks> by_count(static_cast<std::size_t>(space_.most_peers) + 1);
    by_count[0] = {none()};
    for (std::size_t choice = 0; choice < space_.choices.size(); ++choice)
      if (space_.choices[choice].site == site) add_choice(choice, by_count);
    return by_count;
  }

  /// Of one more choice beside `base`.
  struct Candidate {
    double samples_per_s = 0;
    double usd_per_h = 0;
    const Pick* base = nullptr;
    int count = 0;
  };

  bool plain() const { return space_.quotas.empty() && space_.least_domains <= 1; }

  void add_choice(std::size_t choice, std::vector<Picks>& by_count) {
    const Choice& added = space_.choices[choice];
    const std::vector<Picks> before = std::move(by_count);
    by_count.assign(before.size(), {});
    for (std::size_t n = 0; n < by_count.size(); ++n) {
      std::vector<Candidate> candidates;
      const std::size_t most = std::min(n, static_cast<std::size_t>(added.most));
      for (std::size_t count = 0; count <= most; ++count) {
        const auto times = static_cast<int>(count);
        for (const Pick& base : before[n - count])
          candidates.push_back({base.samples_per_s + times * added.samples_per_s,
                                base.usd_per_h + times * added.usd_per_h, &base, times});
      }
      if (plain()) drop_dominated_candidates(candidates);
      for (const Candidate& one : candidates)
        if (Pick pick = with(*one.base, choice, one.count); fits(pick))
          by_count[n].push_back(std::move(pick));
      drop_dominated(by_count[n]);
      thinned_ |= thin(by_count[n], effort_.kept);
    }
  }

  /// Before they become picks, which takes longer.
  static void drop_dominated_candidates(std::vector<Candidate>& candidates) {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.usd_per_h != b.usd_per_h ? a.usd_per_h < b.usd_per_h : a.samples_per_s > b.samples_per_s;
    });
    double fastest = -1;
    std::erase_if(candidates, [&](const Candidate& one) {
      if (one.samples_per_s <= fastest) return true;
      fastest = one.samples_per_s;
      return false;
    });
  }

  /// Those with the best machines first.
  void order_sites() {
    std::vector<double> best(space_.sites, 0);
    for (const Choice& choice : space_.choices)
      best[choice.site] =
          std::max(best[choice.site], choice.samples_per_s / std::max(choice.usd_per_h, 1e-9));
    order_.resize(space_.sites);
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return best[a] > best[b]; });
  }

  /// For bounds: of the sites from each place of order_ on, what a dollar and a peer bring at most.
  void relax() {
    most_sps_.assign(space_.sites + 1, 0);
    most_sps_per_usd_.assign(space_.sites + 1, 0);
    for (std::size_t at = space_.sites; at-- > 0;) {
      most_sps_[at] = most_sps_[at + 1];
      most_sps_per_usd_[at] = most_sps_per_usd_[at + 1];
      for (const Choice& choice : space_.choices) {
        if (choice.site != order_[at] || choice.most == 0) continue;
        most_sps_[at] = std::max(most_sps_[at], choice.samples_per_s);
        most_sps_per_usd_[at] =
            std::max(most_sps_per_usd_[at],
                     choice.usd_per_h > 0 ? choice.samples_per_s / choice.usd_per_h : kNotAllowed);
      }
    }
  }

  /// The best peer by itself, which averages with nobody.
  double alone() const {
    double least = kNotAllowed;
    for (const Choice& choice : space_.choices) {
      if (choice.most == 0) continue;
      const Pick pick{.samples_per_s = choice.samples_per_s, .usd_per_h = choice.usd_per_h};
      least = std::min(least, objective_(score_of_round(space_, pick, {})));
    }
    return least;
  }

  double optimistic(const Pick& pick, int peers) const {
    return objective_(score_of_round(space_, pick, least_[static_cast<std::size_t>(peers)]));
  }

  int had() const { return std::accumulate(peers_.begin(), peers_.end(), 0); }

  /// No plan that adds up to `peers` from order_[from] on to one of the picks has a lesser value. The
  /// cheapest speed is added in portions: each at the price of the one before.
  double bound(const Picks& picks, std::size_t from, int peers) const {
    constexpr int kPortions = 64;
    double least = kNotAllowed;
    const double most_added = peers * most_sps_[from];
    const int before = space_.most_peers - peers;
    for (const Pick& pick : picks) {
      if (pick.samples_per_s > 0) least = std::min(least, optimistic(pick, std::max(2, before)));
      for (int portion = 1; portion <= kPortions && most_added > 0; ++portion) {
        Pick more{.samples_per_s = pick.samples_per_s + most_added * portion / kPortions};
        const double already = most_added * (portion - 1) / kPortions;
        more.usd_per_h = pick.usd_per_h + already / most_sps_per_usd_[from];
        const int added = static_cast<int>(already / most_sps_[from]);
        least = std::min(least, optimistic(more, std::max(2, before + added)));
      }
    }
    return least;
  }

  /// Of the picks for single sites those that no other site makes better than what was found.
  void drop_hopeless() {
    for (std::vector<Picks>& by_count : at_) {
      for (std::size_t n = 1; n < by_count.size(); ++n) {
        const int left = space_.most_peers - static_cast<int>(n);
        std::erase_if(by_count[n], [&](const Pick& pick) { return bound({pick}, 0, left) >= best_value_; });
      }
    }
  }

  void extend(const Picks& picks, Step step) {
    for (std::size_t at = step.from; at < space_.sites && !spent(); ++at) {
      const std::size_t site = order_[at];
      for (int n = 1; n <= step.peers && !spent(); ++n) {
        const Picks& here = at_[site][static_cast<std::size_t>(n)];
        if (here.empty()) continue;
        peers_[site] = n;
        add(picks, here, {at + 1, step.sites - 1, step.peers - n});
      }
      peers_[site] = 0;
    }
  }

  void add(const Picks& picks, const Picks& here, Step next) {
    ++steps_;
    if (next.sites == 0) {
      score(picks, here);
      return;
    }
    Picks sums;
    for (const Pick& a : picks)
      for (const Pick& b : here)
        if (Pick sum = both(a, b); fits(sum)) sums.push_back(std::move(sum));
    drop_dominated(sums);
    thinned_ |= thin(sums, effort_.kept);
    if (bound(sums, next.from, next.peers) < best_value_) extend(sums, next);
  }

  /// Of all picks for the peers that are in peers_.
  void score(const Picks& picks, const Picks& here) {
    reached_ = true;
    if (hopeless(picks, here)) return;
    const Averaging round = had() > 1 ? space_.averaging(peers_) : Averaging{};
    const Pick* best_a = nullptr;
    const Pick* best_b = nullptr;
    double best = kNotAllowed;
    Pick sum;
    for (const Pick& a : picks) {
      for (const Pick& b : here) {
        sum.samples_per_s = a.samples_per_s + b.samples_per_s;
        sum.usd_per_h = a.usd_per_h + b.usd_per_h;
        const double value = objective_(score_of_round(space_, sum, round));
        if (value >= best || !keeps_constraints(a, b)) continue;
        best = value;
        best_a = &a;
        best_b = &b;
      }
    }
    if (best_a != nullptr) note(both(*best_a, *best_b), round, best);
  }

  bool keeps_constraints(const Pick& a, const Pick& b) const {
    if (space_.least_domains > 1 && std::popcount(a.domains | b.domains) < space_.least_domains) return false;
    return space_.quotas.empty() || fits(both(a, b));
  }

  /// Not even the fastest at the price of the cheapest, averaged as fast as can be, beats what was found.
  bool hopeless(const Picks& picks, const Picks& here) const {
    Pick ideal;
    double cheapest_a = kNotAllowed;
    double cheapest_b = kNotAllowed;
    double fastest_a = 0;
    double fastest_b = 0;
    for (const Pick& one : picks) {
      cheapest_a = std::min(cheapest_a, one.usd_per_h);
      fastest_a = std::max(fastest_a, one.samples_per_s);
    }
    for (const Pick& one : here) {
      cheapest_b = std::min(cheapest_b, one.usd_per_h);
      fastest_b = std::max(fastest_b, one.samples_per_s);
    }
    ideal.usd_per_h = cheapest_a + cheapest_b;
    ideal.samples_per_s = fastest_a + fastest_b;
    const double value =
        had() == 1 ? objective_(score_of_round(space_, ideal, {})) : optimistic(ideal, had());
    return value >= (found_.size() < kRunnersUp ? kNotAllowed : best_value_);
  }

  void note(const Pick& pick, const Averaging& round, double value) {
    Selection selection{std::vector<int>(space_.choices.size()), score_of_round(space_, pick, round), value};
    for (const auto& [choice, count] : pick.counts) selection.counts[choice] += count;
    note(std::move(selection));
  }

  void note(Selection selection) {
    best_value_ = std::min(best_value_, selection.value);
    std::vector<bool> sites(space_.sites);
    for (std::size_t i = 0; i < selection.counts.size(); ++i)
      if (selection.counts[i] > 0) sites[space_.choices[i].site] = true;
    const auto known = found_.find(sites);
    if (known == found_.end() || selection.value < known->second.value) found_[sites] = std::move(selection);
  }

  /// Adds and takes away machines of the best plan, some at once, as long as that helps.
  void improve() {
    if (found_.empty()) return;
    Selection best = std::min_element(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
                       return a.second.value < b.second.value;
                     })->second;
    std::size_t left = effort_.steps;
    while (const auto better = neighbour(best, left)) best = *better;
    note(std::move(best));
  }

  std::optional<Selection> neighbour(const Selection& from, std::size_t& left) const {
    for (int some : {8, 4, 2, 1}) {
      for (std::size_t less = 0; less <= from.counts.size(); ++less) {
        const bool takes = less < from.counts.size();
        if (takes && from.counts[less] < some) continue;
        for (std::size_t more = 0; more <= from.counts.size(); ++more) {
          if (more == less || left == 0) continue;
          Selection next = from;
          if (takes) next.counts[less] -= some;
          if (more < from.counts.size()) next.counts[more] += some;
          if (!allowed(space_, next.counts)) continue;
          --left;
          next.score = score_of(space_, next.counts);
          next.value = objective_(next.score);
          if (next.value < from.value) return next;
        }
      }
    }
    return std::nullopt;
  }

  const Space& space_;
  const Objective& objective_;
  Effort effort_;
  std::vector<std::vector<Picks>> at_;  ///< by site and peers
  std::vector<std::size_t> order_;      ///< of the sites
  std::vector<double> most_sps_, most_sps_per_usd_;
  std::vector<int> peers_;                        ///< by site, of the plan in work
  std::map<std::vector<bool>, Selection> found_;  ///< the best of each combination of sites
  std::vector<Averaging> least_;                  ///< by peers
  double best_value_ = kNotAllowed;
  std::size_t steps_ = 0;
  bool thinned_ = false;
  bool reached_ = false;  ///< a set of as many sites as are looked for now
};

}  // namespace

double SearchResult::gap() const {
  if (best.empty() || exact) return 0;
  return std::max(0.0, (best.front().value - bound) / std::abs(best.front().value));
}

SearchResult search(const Space& space, const Objective& objective, Effort effort) {
  return Search(space, objective, effort).run();
}

Score score_of(const Space& space, const std::vector<int>& counts) {
  std::vector<int> peers(space.sites);
  Pick pick;
  for (std::size_t choice = 0; choice < counts.size(); ++choice) {
    peers[space.choices[choice].site] += counts[choice];
    pick.samples_per_s += counts[choice] * space.choices[choice].samples_per_s;
    pick.usd_per_h += counts[choice] * space.choices[choice].usd_per_h;
  }
  const int all = std::accumulate(peers.begin(), peers.end(), 0);
  return score_of_round(space, pick, all > 1 ? space.averaging(peers) : Averaging{});
}

bool allowed(const Space& space, const std::vector<int>& counts) {
  std::vector<double> used(space.quotas.size());
  std::uint64_t domains = 0;
  int peers = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Choice& choice = space.choices[i];
    if (counts[i] > choice.most) return false;
    peers += counts[i];
    if (counts[i] > 0) domains |= std::uint64_t{1} << choice.domain;
    if (choice.quota >= 0) used[static_cast<std::size_t>(choice.quota)] += counts[i] * choice.quota_use;
  }
  for (std::size_t q = 0; q < used.size(); ++q)
    if (used[q] > space.quotas[q] + kRounding) return false;
  return peers > 0 && peers <= space.most_peers && std::popcount(domains) >= space.least_domains;
}

}  // namespace tw
