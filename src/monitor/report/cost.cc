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

}  // namespace

std::map<PeerId, double> machine_hours(const std::vector<std::vector<LogEntry>>& logs) {
  std::map<PeerId, double> hours;
  for (const std::vector<LogEntry>& log : logs) {
    if (log.empty() || log.front().writer == PeerId{}) continue;  // that of `tw local`
    hours[log.front().writer] += hours_of(log);
  }
  return hours;
}

Links::Usd traffic_usd(const std::vector<LogEntry>& entries) {
  Links links(usual_egress_price);
  for (const LogEntry& entry : entries) links.take({entry, to_seconds(entry.event.at.time_since_epoch())});
  Links::Usd usd;
  const auto nobody_runs = [](PeerId) { return false; };
  for (const BoardLink& link : links.board(0, nobody_runs)) {
    usd.bytes += link.usd;
    usd.requests += link.requests_usd;
  }
  return usd;
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
    cost.usd = usd + cost.egress_usd + cost.requests_usd;
  }
  const std::optional<std::uint64_t>& again = summary.leavings.samples_again;
  if (!cost.usd || !again || summary.samples == 0) return;
  const auto lost = static_cast<double>(*again);
  cost.usd_again = *cost.usd * lost / (static_cast<double>(summary.samples) + lost);
}

}  // namespace tw::monitor
