// SPDX-License-Identifier: Apache-2.0
#include "plan/search/site_rounds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/text/number.h"

namespace tw::plan {
namespace {}  // namespace

/// A partial plan, reduced to the sites that matter.
struct SiteRounds::Partial {
  const PartialPlan& plan;
  std::vector<std::size_t> fixed;  ///< sites with peers
  std::vector<std::size_t> open;   ///< where more may come; empty if no more do
  int had = 0;

  int peers() const { return had + plan.more; }
};

SiteRounds::SiteRounds(Workload workload, std::vector<PeerGroup> sites, const market::NetworkProfile& network,
                       const market::Tariffs& tariffs, const HivemindLaw& law)
    : workload_(std::move(workload)),
      sites_(std::move(sites)),
      lines_(lines_of(workload_, sites_, network)),
      best_line_(sites_.size(), 0),
      least_usd_(sites_.size(), kInfinity),
      law_(law),
      hosts_(sites_.size()) {
  for (std::size_t a = 0; a < sites_.size(); ++a) {
    auto& rtt_s = rtt_s_.emplace_back();
    auto& usd = usd_per_gb_.emplace_back();
    auto& streams = streams_.emplace_back();
    hosts_[a].add_host(sites_[a], network, law_);
    for (std::size_t b = 0; b < sites_.size(); ++b) {
      streams.push_back(a == b ? 0 : HivemindLoad::stream_cost(sites_[a], sites_[b], network, law_));
      rtt_s.push_back(network.rtt_s(network_site(sites_[a]), network_site(sites_[b])));
      usd.push_back(tariffs.usd_per_gb(sites_[a].site, sites_[b].site));
      best_line_[a] = std::max({best_line_[a], lines_.pair[a][b], lines_.pair[b][a]});
    }
  }
  for (std::size_t a = 0; a < sites_.size(); ++a)
    for (std::size_t b = 0; b < sites_.size(); ++b)
      if (a != b) least_usd_[a] = std::min(least_usd_[a], between_usd(a, b));
}

double SiteRounds::mb() const {
  if (workload_.pattern != Pattern::hivemind) return workload_.round_mb();
  const HivemindLoad many{.peers = 1'000'000};
  return hivemind_round(workload_.model, many, law_, 0).sent_mb / (1 - 1e-6) / 2;
}

Averaging SiteRounds::of(const std::vector<int>& peers) {
  const auto known = known_.find(peers);
  if (known != known_.end()) return known->second;
  if (workload_.pattern == Pattern::hivemind) return known_[peers] = hivemind(peers);
  std::vector<std::size_t> used;
  for (std::size_t site = 0; site < peers.size(); ++site)
    if (peers[site] > 0) used.push_back(site);
  std::vector<PeerGroup> groups;
  Lines lines;
  for (std::size_t a : used) {
    groups.push_back({peers[a], sites_[a].gpu, sites_[a].site});
    lines.card.push_back(lines_.card[a]);
    auto& row = lines.pair.emplace_back();
    for (std::size_t b : used) {
      row.push_back(lines_.pair[a][b]);
      lines.rtt_s = std::max(lines.rtt_s, rtt_s_[a][b]);
    }
  }
  const RoundTime time = derived_round(workload_, groups, lines);
  Averaging round{.seconds = time.comm_s};
  for (std::size_t a = 0; a < used.size(); ++a)
    for (std::size_t b = 0; b < used.size(); ++b)
      round.usd += time.sent_mb[a][b] / 1e3 * usd_per_gb_[used[a]][used[b]];
  return known_[peers] = round;
}

SiteRounds::Partial SiteRounds::partial_of(const PartialPlan& plan) const {
  Partial partial{.plan = plan, .fixed = {}, .open = {}};
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    if (plan.peers[site] > 0) partial.fixed.push_back(site);
    partial.had += plan.peers[site];
    if (plan.more > 0 && plan.open[site]) partial.open.push_back(site);
  }
  return partial;
}

Averaging SiteRounds::least(const PartialPlan& plan) const {
  const Partial partial = partial_of(plan);
  if (partial.peers() < 2) return {};
  switch (workload_.pattern) {
    case Pattern::ring:
    case Pattern::parameter_server:
      return {.seconds = least_of_others(partial).comm_s(), .usd = 0};
    case Pattern::tradewind_sites:
      return {.seconds = least_by_sites(partial).comm_s(), .usd = 0};
    case Pattern::hivemind:
      return least_hivemind(partial);
    default:
      return {.seconds = least_flat(partial).comm_s(), .usd = least_flat_usd(partial)};
  }
}

double SiteRounds::least_rtt_s(const Partial& plan) const {
  double longest = 0;
  for (std::size_t a : plan.fixed)
    for (std::size_t b : plan.fixed) longest = std::max(longest, rtt_s_[a][b]);
  double nearest = plan.open.empty() ? 0 : kInfinity;
  for (std::size_t one : plan.open) {
    double farthest = rtt_s_[one][one];
    for (std::size_t a : plan.fixed) farthest = std::max({farthest, rtt_s_[a][one], rtt_s_[one][a]});
    nearest = std::min(nearest, farthest);
  }
  return std::max(longest, nearest);
}

/// The linear programme of the whole plan, in which each other peer has the best bandwidth of any open site.
/// Shares of any completion give shares of this one that take no longer: the mean over the other peers.
RoundParts SiteRounds::least_flat(const Partial& plan) const {
  std::vector<int> peers;
  Lines lines;
  for (std::size_t a : plan.fixed) {
    peers.push_back(plan.plan.peers[a]);
    lines.card.push_back(lines_.card[a]);
    auto& row = lines.pair.emplace_back();
    for (std::size_t b : plan.fixed) row.push_back(lines_.pair[a][b]);
  }
  if (!plan.open.empty()) {
    double card = 0;
    double among = 0;
    for (std::size_t one : plan.open) {
      card = std::max(card, lines_.card[one]);
      among = std::max(among, best_line_[one]);
    }
    std::vector<double> to;
    for (std::size_t at = 0; at < plan.fixed.size(); ++at) {
      const std::size_t a = plan.fixed[at];
      double there = 0;
      double back = 0;
      for (std::size_t one : plan.open) {
        there = std::max(there, lines_.pair[a][one]);
        back = std::max(back, lines_.pair[one][a]);
      }
      lines.pair[at].push_back(there);
      to.push_back(back);
    }
    to.push_back(among);
    lines.pair.push_back(std::move(to));
    lines.card.push_back(card);
    peers.push_back(plan.plan.more);
  }
  const double n = plan.peers();
  return round_parts(workload_, flat_seconds_per_byte(peers, lines), 2 * (n - 1) / n * mb(),
                     latency_s(workload_.pattern, plan.peers(), least_rtt_s(plan)));
}

/// Every peer sends 2 MB / N to each other one. As many of the others as possible are at one site.
double SiteRounds::least_flat_usd(const Partial& plan) const {
  double usd_per_gb = 0;
  const std::vector<int>& peers = plan.plan.peers;
  const double more = plan.plan.more;
  for (std::size_t a : plan.fixed) {
    usd_per_gb += peers[a] * (peers[a] - 1.0) * usd_per_gb_[a][a];
    for (std::size_t b : plan.fixed)
      if (a != b) usd_per_gb += peers[a] * peers[b] * usd_per_gb_[a][b];
  }
  if (!plan.open.empty()) {
    std::vector<double> to_new;  // of a peer at an open site that has none
    double to_any = kInfinity;
    double inside = kInfinity;
    double between = kInfinity;
    for (std::size_t one : plan.open) {
      double all = 0;
      for (std::size_t a : plan.fixed) all += peers[a] * between_usd(a, one);
      if (peers[one] == 0) to_new.push_back(all);
      to_any = std::min(to_any, all);
      inside = std::min(inside, usd_per_gb_[one][one]);
      between = std::min(between, least_usd_[one] / 2);
    }
    const auto apart = std::min<std::size_t>(static_cast<std::size_t>(plan.plan.apart), to_new.size());
    std::nth_element(to_new.begin(), to_new.begin() + static_cast<std::ptrdiff_t>(apart), to_new.end());
    const double k = static_cast<double>(apart);
    usd_per_gb += std::accumulate(to_new.begin(), to_new.begin() + static_cast<std::ptrdiff_t>(apart), 0.0);
    usd_per_gb += std::max(0.0, more - k) * to_any;
    double pairs_inside = more * (std::min<double>(more, plan.plan.most_each) - 1);
    if (apart > 0) pairs_inside = std::min(pairs_inside, std::max(0.0, (more - k + 1) * (more - k)));
    usd_per_gb += pairs_inside * std::min(inside, between) + (more * (more - 1) - pairs_inside) * between;
  }
  return 2 * mb() / plan.peers() / 1e3 * usd_per_gb;
}

/// A peer of a site with n of K sites sends 2 - 2 / (K n) vectors; pairs of sites share 2 / K.
RoundParts SiteRounds::least_by_sites(const Partial& plan) const {
  const double fixed = static_cast<double>(plan.fixed.size());
  const double fewest = std::max(1.0, fixed);
  const double most = fixed + std::min<double>(plan.plan.more, static_cast<double>(plan.open.size()));
  double wire = 0;
  double sent = 0;
  for (std::size_t a : plan.fixed) {
    const double vectors = 2 - 2 / (fewest * plan.plan.peers[a]);
    sent = std::max(sent, vectors);
    wire = std::max(wire, vectors / lines_.card[a]);
    for (std::size_t b : plan.fixed) {
      if (a == b) continue;
      const double pairs = std::min(plan.plan.peers[a] + (plan.plan.open[a] ? plan.plan.more : 0),
                                    plan.plan.peers[b] + (plan.plan.open[b] ? plan.plan.more : 0));
      wire = std::max(wire, 2 / most / pairs / lines_.pair[a][b]);
    }
  }
  return round_parts(workload_, wire, sent * mb(),
                     latency_s(workload_.pattern, plan.peers(), least_rtt_s(plan)));
}

/// In any ring or server pattern, a peer sends and receives 2 (N - 1) / N vectors at the best of all
/// bandwidths.
RoundParts SiteRounds::least_of_others(const Partial& plan) const {
  double best = 0;
  for (double line : best_line_) best = std::max(best, line);
  for (double card : lines_.card) best = std::max(best, card);
  const double n = plan.peers();
  return round_parts(workload_, 2 * (n - 1) / n / best, 0,
                     latency_s(workload_.pattern, plan.peers(), least_rtt_s(plan)));
}

/// Peers finish their microbatch, so that a round has more than the target batch. Scaled down to the target
/// batch, as in the search, a round has the same speed and cost per sample.
Averaging SiteRounds::hivemind_averaging(const HivemindLoad& load, double usd) const {
  const double target = workload_.target_batch_size;
  const double share = target > 0 ? target / hivemind_round_samples(workload_.model, load.peers, target) : 1;
  const HivemindRound round = hivemind_round(workload_.model, load, law_, kInfinity);
  return {
      .seconds = round.comm_s * share, .calc_s = workload_.model.matchmaking_s * share, .usd = usd * share};
}

HivemindLoad SiteRounds::load_of_fixed(const Partial& plan) const {
  HivemindLoad load{.peers = plan.peers()};
  for (std::size_t a : plan.fixed) {
    load.update_host = std::max(load.update_host, hosts_[a].update_host);
    load.exchange_host = std::max(load.exchange_host, hosts_[a].exchange_host);
    load.card_s_per_byte = std::max(load.card_s_per_byte, hosts_[a].card_s_per_byte);
    for (std::size_t b : plan.fixed)
      if (a < b) load.streams += plan.plan.peers[a] * plan.plan.peers[b] * streams_[a][b];
  }
  return load;
}

Averaging SiteRounds::hivemind(const std::vector<int>& peers) const {
  const PartialPlan all{peers, std::vector<bool>(peers.size()), 0, 0};
  const Partial whole = partial_of(all);
  const double between_two_mb = 2 * mb() / whole.peers();
  double usd = 0;
  for (std::size_t a : whole.fixed)
    for (std::size_t b : whole.fixed)
      usd += peers[a] * (peers[b] - (a == b ? 1 : 0)) * between_two_mb / 1e3 * usd_per_gb_[a][b];
  return hivemind_averaging(load_of_fixed(whole), usd);
}

/// The other peers all have the best host of any open site, the quickest streams of any open site to the
/// peers that are there, and no streams among themselves.
Averaging SiteRounds::least_hivemind(const Partial& plan) const {
  HivemindLoad load = load_of_fixed(plan);
  if (!plan.open.empty()) {
    HivemindLoad best{.update_host = kInfinity,
                      .exchange_host = kInfinity,
                      .streams = kInfinity,
                      .card_s_per_byte = kInfinity};
    for (std::size_t one : plan.open) {
      best.update_host = std::min(best.update_host, hosts_[one].update_host);
      best.exchange_host = std::min(best.exchange_host, hosts_[one].exchange_host);
      best.card_s_per_byte = std::min(best.card_s_per_byte, hosts_[one].card_s_per_byte);
      double streams = 0;
      for (std::size_t a : plan.fixed) streams += plan.plan.peers[a] * streams_[a][one];
      best.streams = std::min(best.streams, streams);
    }
    load.update_host = std::max(load.update_host, best.update_host);
    load.exchange_host = std::max(load.exchange_host, best.exchange_host);
    load.card_s_per_byte = std::max(load.card_s_per_byte, best.card_s_per_byte);
    load.streams += plan.plan.more * best.streams;
  }
  return hivemind_averaging(load, least_flat_usd(plan));
}

}  // namespace tw::plan
