// SPDX-License-Identifier: Apache-2.0
#include "plan/model/round_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "base/simplex.h"
#include "market/averaging_overheads.h"

namespace tw::plan {
namespace {

/// Plan, last segments out and back, votes, record.
constexpr double kRoundTrips = 4;
constexpr double kDerivedFactor = 1.25;

/// All peers at the group's site, also those with other GPUs.
double peers_at_site_of(const PeerGroup& group, const std::vector<PeerGroup>& peers) {
  double count = 0;
  for (const PeerGroup& other : peers)
    if (network_site(other) == network_site(group)) count += other.count;
  return count;
}

double sites_of(const std::vector<PeerGroup>& peers) {
  std::set<market::Site> sites;
  for (const PeerGroup& group : peers) sites.insert(network_site(group));
  return static_cast<double>(sites.size());
}

/// Each peer of a site gathers its part of the vector from the others there. Roots, one in each site for a
/// segment, exchange partial sums and means (2 (K - 1) vectors cross between K sites); the means go round the
/// site. Traffic within and between sites overlaps, segment by segment.
double sites_seconds(const std::vector<PeerGroup>& peers, const Lines& lines) {
  double longest_s = 0;
  const double sites = sites_of(peers);
  for (std::size_t g = 0; g < peers.size(); ++g) {
    const double n = peers_at_site_of(peers[g], peers);
    // Sent by one peer: in the site, and its part of the traffic between sites.
    const double card = 2 * (n - 1) / n + 2 * (sites - 1) / sites / n;
    longest_s = std::max(longest_s, card / lines.card[g]);
    for (std::size_t h = 0; h < peers.size(); ++h) {
      if (network_site(peers[g]) == network_site(peers[h])) continue;
      // Partial sums one way, means the other, over as many pairs as the smaller site has peers.
      const double pairs = std::min(n, peers_at_site_of(peers[h], peers));
      longest_s = std::max(longest_s, 2 / sites / pairs / lines.pair[g][h]);
    }
  }
  return longest_s;
}

/// Groups follow each other in the given order; each step waits for the slowest link.
double ring_seconds(const std::vector<PeerGroup>& peers, const Lines& lines) {
  double slowest = 0;
  for (std::size_t g = 0; g < peers.size(); ++g) {
    const std::size_t next = (g + 1) % peers.size();
    slowest = std::max(slowest, 1 / lines.pair[g][next]);
    if (peers[g].count > 1) slowest = std::max(slowest, 1 / lines.pair[g][g]);
  }
  const double n = count_of(peers);
  return 2 * (n - 1) / n * slowest;
}

/// The first peer gathers from all, then sends to all.
double server_seconds(const std::vector<PeerGroup>& peers, const Lines& lines) {
  double slowest = (count_of(peers) - 1) / lines.card[0];
  for (std::size_t g = 0; g < peers.size(); ++g) {
    if (g > 0 || peers[g].count > 1) slowest = std::max(slowest, 1 / lines.pair[g][0]);
  }
  return 2 * slowest;
}

std::vector<int> counts_of(const std::vector<PeerGroup>& peers) {
  std::vector<int> counts;
  for (const PeerGroup& group : peers) counts.push_back(group.count);
  return counts;
}

double seconds_per_byte(Pattern pattern, const std::vector<PeerGroup>& peers, const Lines& lines) {
  switch (pattern) {
    case Pattern::tradewind_sites:
      return sites_seconds(peers, lines);
    case Pattern::ring:
      return ring_seconds(peers, lines);
    case Pattern::parameter_server:
      return server_seconds(peers, lines);
    default:
      return flat_seconds_per_byte(counts_of(peers), lines);
  }
}

using Sent = std::vector<std::vector<double>>;

/// All peers of a site send the same amount, in whatever group.
Sent sent_by_sites(const std::vector<PeerGroup>& peers, double mb) {
  Sent sent(peers.size(), std::vector<double>(peers.size()));
  const double sites = sites_of(peers);
  for (std::size_t g = 0; g < peers.size(); ++g) {
    const double n = peers_at_site_of(peers[g], peers);
    for (std::size_t h = 0; h < peers.size(); ++h) {
      const bool near = network_site(peers[g]) == network_site(peers[h]);
      const double to = near ? peers[h].count - (g == h ? 1 : 0)
                             : peers[h].count / peers_at_site_of(peers[h], peers) / sites;
      sent[g][h] = 2 * mb * peers[g].count / n * to;
    }
  }
  return sent;
}

Sent sent_round_a_ring(const std::vector<PeerGroup>& peers, double mb) {
  Sent sent(peers.size(), std::vector<double>(peers.size()));
  const double n = count_of(peers);
  const double edge = 2 * (n - 1) / n * mb;
  for (std::size_t g = 0; g < peers.size(); ++g) {
    sent[g][g] += edge * (peers[g].count - 1);
    sent[g][(g + 1) % peers.size()] += edge;
  }
  return sent;
}

Sent sent_through_a_server(const std::vector<PeerGroup>& peers, double mb) {
  Sent sent(peers.size(), std::vector<double>(peers.size()));
  for (std::size_t g = 0; g < peers.size(); ++g) {
    const int workers = peers[g].count - (g == 0 ? 1 : 0);
    sent[g][0] += mb * workers;
    sent[0][g] += mb * workers;
  }
  return sent;
}

Sent sent_by(Pattern pattern, const std::vector<PeerGroup>& peers, double mb) {
  switch (pattern) {
    case Pattern::tradewind_sites:
      return sent_by_sites(peers, mb);
    case Pattern::ring:
      return sent_round_a_ring(peers, mb);
    case Pattern::parameter_server:
      return sent_through_a_server(peers, mb);
    default:
      return sent_evenly(peers, 2 * (count_of(peers) - 1.0) / count_of(peers) * mb);
  }
}

/// Amount of a peer in the group whose peers send most.
double most_sent_mb(const std::vector<PeerGroup>& peers, const Sent& sent) {
  double most = 0;
  for (std::size_t g = 0; g < peers.size(); ++g)
    most = std::max(most, std::accumulate(sent[g].begin(), sent[g].end(), 0.0) / peers[g].count);
  return most;
}

}  // namespace

Lines lines_of(const Workload& workload, const std::vector<PeerGroup>& peers,
               const market::NetworkProfile& network) {
  Lines lines;
  double slowest = 0;
  for (const PeerGroup& from : peers) {
    lines.card.push_back(network.bytes_per_s(network_site(from), network_site(from), workload.streams));
    auto& row = lines.pair.emplace_back();
    for (const PeerGroup& to : peers) {
      const market::Site a = network_site(from);
      const market::Site b = network_site(to);
      row.push_back(network.bytes_per_s(a, b, workload.streams));
      lines.rtt_s = std::max(lines.rtt_s, network.rtt_s(a, b));
      if (from.site == to.site || (slowest > 0 && row.back() >= slowest)) continue;
      slowest = row.back();
      lines.slowest = to_string(from.site) + ">" + to_string(to.site);
    }
  }
  return lines;
}

/// The same bound as swarm/shares/bound.h, with equal shares within a group. Rows are linear in the
/// shares times z, z = 1 / seconds.
double flat_seconds_per_byte(const std::vector<int>& peers, const Lines& lines) {
  const std::size_t z = peers.size();
  const double n = std::accumulate(peers.begin(), peers.end(), 0);
  double unit = 0;
  for (std::size_t g = 0; g < z; ++g) unit = std::max(unit, lines.card[g]);
  std::vector<Row> rows;
  Row all{std::vector<double>(z + 1), 0};
  all.factors[z] = 1;
  for (std::size_t g = 0; g < z; ++g) {
    all.factors[g] = -peers[g];
    Row card{std::vector<double>(z + 1), lines.card[g] / unit};
    card.factors[z] = 1;
    card.factors[g] = n - 2;
    rows.push_back(std::move(card));
    for (std::size_t h = 0; h < z; ++h) {
      if (g == h && peers[g] == 1) continue;
      Row pair{std::vector<double>(z + 1), lines.pair[g][h] / unit};
      pair.factors[g] += 1;
      pair.factors[h] += 1;
      rows.push_back(std::move(pair));
    }
  }
  rows.push_back(all);
  return 1 / (with_largest_last(rows).back() * unit);
}

std::vector<std::vector<double>> sent_evenly(const std::vector<PeerGroup>& peers, double mb_per_peer) {
  std::vector<std::vector<double>> sent;
  const int others = count_of(peers) - 1;
  for (const PeerGroup& from : peers) {
    auto& row = sent.emplace_back();
    for (const PeerGroup& to : peers) {
      const int pairs = from.count * (&from == &to ? to.count - 1 : to.count);
      row.push_back(others > 0 ? mb_per_peer * pairs / others : 0);
    }
  }
  return sent;
}

double wire_seconds(const Workload& workload, const std::vector<PeerGroup>& peers,
                    const market::NetworkProfile& network) {
  const double bytes = workload.round_mb() * 1e6;
  return bytes * seconds_per_byte(workload.pattern, peers, lines_of(workload, peers, network));
}

double latency_s(Pattern pattern, int peers, double rtt_s) {
  return market::kRoundS + (pattern == Pattern::ring ? peers - 1 : kRoundTrips) * rtt_s;
}

RoundParts round_parts(const Workload& workload, double wire_s_per_byte, double most_sent_mb,
                       double latency_s) {
  const double bytes = workload.round_mb() * 1e6;
  return {.wire_s = bytes * wire_s_per_byte / market::kShareOfBound,
          .processor_s = market::kProcessorSPerGb * most_sent_mb / 1e3,
          .latency_s = latency_s,
          .update_s = market::kUpdateSPerMParams * workload.round_params_m()};
}

RoundTime derived_round(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Knowledge& knowledge) {
  return derived_round(workload, peers, lines_of(workload, peers, knowledge.network));
}

RoundTime derived_round(const Workload& workload, const std::vector<PeerGroup>& peers, const Lines& lines) {
  if (count_of(peers) < 2) return {.sent_mb = sent_evenly(peers, 0)};
  const double mb = workload.round_mb();
  RoundTime time{.factor = kDerivedFactor, .sent_mb = sent_by(workload.pattern, peers, mb)};
  const RoundParts parts = round_parts(workload, seconds_per_byte(workload.pattern, peers, lines),
                                       most_sent_mb(peers, time.sent_mb),
                                       latency_s(workload.pattern, count_of(peers), lines.rtt_s));
  time.comm_s = parts.comm_s();
  const double longest = std::max({parts.wire_s, parts.processor_s, parts.latency_s, parts.update_s});
  if (longest == parts.wire_s) {
    time.limit = lines.slowest.empty() ? "network card" : "path " + lines.slowest;
  } else {
    time.limit = longest == parts.processor_s ? "exchange"
                 : longest == parts.latency_s ? "latency"
                                              : "update";
  }
  return time;
}

}  // namespace tw::plan
