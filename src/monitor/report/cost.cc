// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/cost.h"

namespace tw::monitor {
namespace {

/// The hours in one log: its processes follow one another, each with a time line of its own after a restart
/// of the machine.
double hours_of(const std::vector<LogEntry>& log) {
  double seconds = 0;
  bool runs = false;
  Instant begun{}, last{};
  const auto end = [&] {
    if (runs && last > begun) seconds += to_seconds(last - begun);
    runs = false;
  };
  for (const LogEntry& entry : log) {
    if (entry.event.phase == world::Phase::start) end();
    if (!runs) begun = entry.event.at;
    runs = true;
    last = entry.event.at;
    if (entry.event.phase == world::Phase::stop) end();
  }
  end();
  return seconds / 3600;
}

/// What is known of dollars for things of which some may have no price.
struct Sum {
  double known_usd = 0;
  bool some_known = false, some_unknown = false;

  void add(std::uint64_t things, const std::optional<double>& usd) {
    known_usd += usd.value_or(0);
    some_known = some_known || (things > 0 && usd);
    some_unknown = some_unknown || (things > 0 && !usd);
  }

  std::optional<double> usd() const {
    return some_unknown && !some_known ? std::nullopt : std::optional(known_usd);
  }
};

/// Nothing is known of a sum with an unknown part.
void add_to(std::optional<double>& sum, double more, bool is_known) {
  if (!is_known)
    sum.reset();
  else if (sum)
    *sum += more;
}

}  // namespace

std::map<PeerId, double> machine_hours(const std::vector<std::vector<LogEntry>>& logs) {
  std::map<PeerId, double> hours;
  for (const std::vector<LogEntry>& log : logs) {
    if (log.empty() || log.front().writer == PeerId{}) continue;  // that of the launcher
    hours[log.front().writer] += hours_of(log);
  }
  return hours;
}

void tell_traffic(Summary& summary, const std::vector<LogEntry>& entries) {
  Links links(usual_egress_price);
  for (const LogEntry& entry : entries) links.take({entry, to_seconds(entry.event.at.time_since_epoch())});
  Sum egress, requests;
  std::map<std::string, StoreUsed> stores;
  const auto nobody_runs = [](PeerId) { return false; };
  for (const BoardLink& link : links.board(0, nobody_runs)) {
    const auto usd = link.usd_per_gb ? std::optional(link.usd) : std::nullopt;
    egress.add(link.bytes, usd);
    if (link.store.empty()) continue;
    requests.add(link.requests, link.requests_usd);
    StoreUsed& store = stores[link.store];
    store.store = link.store;
    StoreTraffic& traffic = link.reads_store() ? store.read : store.written;
    traffic.bytes += link.bytes;
    traffic.requests += link.requests;
    add_to(traffic.usd, link.usd, link.usd_per_gb.has_value());
    add_to(traffic.requests_usd, link.requests_usd.value_or(0), link.requests_usd.has_value());
  }
  summary.cost.egress_usd = egress.usd();
  summary.cost.requests_usd = requests.usd();
  for (auto& [name, store] : stores) summary.stores.push_back(std::move(store));
}

void tell_cost(Summary& summary, const std::map<PeerId, double>& usd_per_h) {
  Cost& cost = summary.cost;
  double usd = 0;
  cost.priced_hours = 0;
  for (PeerSummary& peer : summary.peers) {
    const auto given = usd_per_h.find(peer.id);
    if (!peer.usd_per_h && given != usd_per_h.end()) peer.usd_per_h = given->second;
    if (!peer.usd_per_h || !peer.hours) continue;
    peer.usd = *peer.hours * *peer.usd_per_h;
    usd += *peer.usd;
    cost.priced_hours += *peer.hours;
    cost.usd = usd + cost.egress_usd.value_or(0) + cost.requests_usd.value_or(0);
  }
  for (DroppedRounds& dropped : summary.dropped) {
    for (const PeerSummary& peer : summary.peers) {
      const auto spent = dropped.spent.find(peer.id);
      if (peer.usd_per_h && spent != dropped.spent.end())
        dropped.usd = dropped.usd.value_or(0) + to_seconds(spent->second) / 3600 * *peer.usd_per_h;
    }
  }
  const std::optional<std::uint64_t>& again = summary.leavings.samples_again;
  if (!cost.usd || !again || summary.samples == 0) return;
  const auto lost = static_cast<double>(*again);
  cost.usd_again = *cost.usd * lost / (static_cast<double>(summary.samples) + lost);
}

}  // namespace tw::monitor
