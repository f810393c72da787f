// SPDX-License-Identifier: Apache-2.0
#include "plan/search/search_machines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tw::plan {
namespace {

constexpr std::size_t kStepsOfJudging = 200;  ///< as long as scenarios of a plan take

void add_peers(MachineSums& sums, const Choice& choice, int peers) {
  sums.samples_per_s += peers * choice.samples_per_s;
  sums.slow_samples_per_s += peers * choice.slow_samples_per_s;
  sums.usd_per_h += peers * choice.usd_per_h;
  sums.start_h = std::max(sums.start_h, choice.start_h);
}

double worth(const Choice& choice) { return choice.samples_per_s / std::max(choice.usd_per_h, 1e-9); }

}  // namespace

MachineSearch::MachineSearch(const Space& space, const Relaxation& relaxation, const Objective& objective)
    : space_(space),
      relaxation_(relaxation),
      objective_(objective),
      sites_(space.sites),
      counts_(space.choices.size()),
      used_(space.quotas.size()) {
  int domains = 0;
  for (std::size_t i = 0; i < space.choices.size(); ++i) {
    sites_[space.choices[i].site].choices.push_back(i);
    domains = std::max(domains, space.choices[i].domain + 1);
  }
  of_domain_.assign(static_cast<std::size_t>(domains), 0);
  for (Site& site : sites_) {
    std::stable_sort(site.choices.begin(), site.choices.end(), [&](std::size_t a, std::size_t b) {
      return worth(space.choices[a]) > worth(space.choices[b]);
    });
    site.ranking = relaxation.ranking_of(site.choices);
    site.gains = relaxation.gains_of(site.ranking);
    site.room = static_cast<int>(site.ranking.back().size());
    std::set<int> of_site;
    for (std::size_t choice : site.choices)
      if (space.choices[choice].most > 0) of_site.insert(space.choices[choice].domain);
    site.domains = static_cast<int>(of_site.size());
  }
}

void MachineSearch::split(Site& site) const {
  Relaxation::Ranking ranking = relaxation_.ranking_of({});
  site.from.push_back(relaxation_.gains_of(ranking));
  for (auto choice = site.choices.rbegin(); choice != site.choices.rend(); ++choice) {
    relaxation_.merge(ranking, relaxation_.ranking_of({*choice}));
    site.from.push_back(relaxation_.gains_of(ranking));
  }
  std::reverse(site.from.begin(), site.from.end());
}

Score MachineSearch::rounded_score(const std::vector<SitePeers>& sites, const Averaging& round,
                                   std::size_t slope) const {
  MachineSums sums;
  for (const SitePeers& here : sites)
    for (int n = 0; n < here.peers; ++n)
      add_peers(sums, space_.choices[ranking_at(here.site)[slope][static_cast<std::size_t>(n)]], 1);
  return score_of(space_, sums, round);
}

double MachineSearch::rounded_value(const std::vector<SitePeers>& sites, const Averaging& round) const {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < relaxation_.slopes(); ++k)
    least = std::min(least, objective_(rounded_score(sites, round, k)));
  return least;
}

std::optional<Selection> MachineSearch::rounded(const std::vector<SitePeers>& sites, const Averaging& round,
                                                double below) {
  std::vector<Selection> found;
  for (std::size_t k = 0; k < relaxation_.slopes(); ++k) {
    const Score score = rounded_score(sites, round, k);
    const double value = objective_(score);
    if (!(value < below)) continue;
    Selection selection{std::vector<int>(space_.choices.size()), score, value};
    for (const SitePeers& here : sites)
      for (int n = 0; n < here.peers; ++n)
        ++selection.counts[ranking_at(here.site)[k][static_cast<std::size_t>(n)]];
    if (!allowed(space_, selection.counts)) continue;
    settle(selection);
    if (!(selection.value < below)) continue;
    if (!space_.accepts) below = selection.value;
    found.push_back(std::move(selection));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Selection& a, const Selection& b) { return a.value < b.value; });
  const auto same = [](const Selection& a, const Selection& b) { return a.counts == b.counts; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  for (Selection& one : found)
    if (accepted(one.counts)) return std::move(one);
  return std::nullopt;
}

bool MachineSearch::accepted(const std::vector<int>& counts) {
  if (!space_.accepts) return true;
  steps += kStepsOfJudging;
  return space_.accepts(counts);
}

void MachineSearch::settle(Selection& selection) const {
  plan::settle(space_, selection.counts, selection.score);
  const bool keeps = !space_.keeps || space_.keeps(selection.score);
  selection.value = keeps ? objective_(selection.score) : std::numeric_limits<double>::infinity();
}

std::optional<Selection> MachineSearch::best(const std::vector<SitePeers>& sites, const Averaging& round,
                                             double below, double tolerance) {
  task_ = &sites;
  round_ = round;
  below_ = below;
  tolerance_ = tolerance;
  gave_up = false;
  found_.reset();
  for (const SitePeers& here : sites)
    if (sites_[here.site].from.empty()) split(sites_[here.site]);
  domains_later_ = 0;
  for (std::size_t later = 1; later < sites.size(); ++later) domains_later_ += domains_at(sites[later]);
  descend({0, 0, sites.front().peers});
  return std::move(found_);
}

double MachineSearch::threshold() const {
  return std::isinf(below_) ? below_ : below_ - tolerance_ * std::abs(below_);
}

/// A negative number puts them back.
void MachineSearch::take(std::size_t choice, int peers) {
  const Choice& one = space_.choices[choice];
  counts_[choice] += peers;
  if (peers != 0) add_peers(sums_, one, peers);
  for (const int quota : one.quotas) used_[static_cast<std::size_t>(quota)] += peers * one.quota_use;
  int& there = of_domain_[static_cast<std::size_t>(one.domain)];
  domains_ -= there > 0 ? 1 : 0;
  there += peers;
  domains_ += there > 0 ? 1 : 0;
}

bool MachineSearch::has_room(std::size_t choice, int peers) const {
  const Choice& one = space_.choices[choice];
  if (peers > one.most) return false;
  return std::ranges::all_of(one.quotas, [&](int number) {
    const auto quota = static_cast<std::size_t>(number);
    return used_[quota] + peers * one.quota_use <= space_.quotas[quota] + kQuotaRounding;
  });
}

double MachineSearch::bound_at(const Place& place) {
  ++steps;
  Relaxation::Sums sums = relaxation_.none();
  for (std::size_t k = 0; k < sums.gain.size(); ++k) sums.gain[k] = relaxation_.gain_of(sums_, k);
  sums.cheapest_usd_per_h = sums.dearest_usd_per_h = sums_.usd_per_h;
  const auto& sites = *task_;
  relaxation_.add(sums, sites_[sites[place.site].site].from[place.choice], place.left);
  for (std::size_t later = place.site + 1; later < sites.size(); ++later)
    relaxation_.add(sums, gains_at(sites[later].site), sites[later].peers);
  return relaxation_.least_value(objective_, sums, round_, threshold());
}

void MachineSearch::descend(Place place) {
  const int before = domains_later_;
  while (place.left == 0) {
    if (++place.site == task_->size()) {
      conclude();
      break;
    }
    place = {place.site, 0, (*task_)[place.site].peers};
    domains_later_ -= domains_at((*task_)[place.site]);
  }
  const bool any = place.left > 0 && place.choice < sites_[(*task_)[place.site].site].choices.size();
  if (any && domains_ + place.left + domains_later_ >= space_.least_domains) branch(place);
  domains_later_ = before;
}

/// Tries the most promising numbers of the choice first.
void MachineSearch::branch(const Place& place) {
  if (steps >= most_steps) {
    gave_up = true;
    return;
  }
  const std::size_t choice = sites_[(*task_)[place.site].site].choices[place.choice];
  // Saved values: adding and subtracting would let the sums drift.
  const MachineSums before = sums_;
  std::vector<std::pair<double, int>> numbers;
  for (int n = 0; n <= place.left && has_room(choice, n); ++n) {
    take(choice, n);
    const double bound = bound_at({place.site, place.choice + 1, place.left - n});
    take(choice, -n);
    sums_ = before;
    if (bound < threshold()) numbers.emplace_back(bound, n);
  }
  std::sort(numbers.begin(), numbers.end());
  for (const auto& [bound, n] : numbers) {
    if (bound >= threshold()) break;
    take(choice, n);
    descend({place.site, place.choice + 1, place.left - n});
    take(choice, -n);
    sums_ = before;
  }
}

void MachineSearch::conclude() {
  if (domains_ < space_.least_domains) return;
  Selection selection{counts_, score_of(space_, sums_, round_), below_};
  settle(selection);
  if (!(selection.value < below_) || !accepted(selection.counts)) return;
  below_ = selection.value;
  found_ = std::move(selection);
}

}  // namespace tw::plan
