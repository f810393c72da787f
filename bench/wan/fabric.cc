// SPDX-License-Identifier: Apache-2.0
#include "wan/fabric.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tw::wan {
namespace {

/// 10.77.SITE.HOST, as Topology::hosts() writes it.
std::uint32_t address_of(const Host& host) {
  return 10U << 24 | 77U << 16 | static_cast<std::uint32_t>(host.site + 1) << 8 |
         static_cast<std::uint32_t>(host.number);
}

}  // namespace

bool Fabric::Event::operator<(const Event& other) const {
  return std::pair(at, order) > std::pair(other.at, other.order);
}

Fabric::Fabric(const Topology& topology, bool kernel_nics, std::uint64_t seed)
    : sites_(topology.sites.size()), prng_(seed) {
  const auto gate = [&](double bit_s) { return Gate(bit_s, topology.queue); };
  for (const Host& host : topology.hosts()) {
    const Site& site = topology.sites[host.site];
    host_at_[address_of(host)] = static_cast<std::uint32_t>(hosts_.size());
    hosts_.push_back({.site = host.site,
                      .up = gate(kernel_nics ? kUnlimited : site.nic_up_bit_s),
                      .down = gate(site.nic_down_bit_s)});
  }
  for (const Site& site : topology.sites)
    site_gates_.push_back({.up = gate(site.egress_bit_s), .down = gate(site.ingress_bit_s)});
  for (const Link& link : topology.links)
    lanes_.push_back({.link = link, .gate = gate(link.bit_s), .wire = {}, .traffic = {}});
}

bool Fabric::push(std::size_t host, const Envelope& envelope, Frame& frame, Instant now) {
  const auto to = host_at_.find(envelope.destination);
  if (to == host_at_.end()) return false;
  if (free_flights_.empty()) {
    free_flights_.push_back(static_cast<std::uint32_t>(flights_.size()));
    flights_.emplace_back();
  }
  const std::uint32_t index = free_flights_.back();
  free_flights_.pop_back();
  flights_[index] = {.frame = std::move(frame),
                     .wire_bytes = envelope.wire_bytes,
                     .packets = envelope.packets,
                     .from = static_cast<std::uint32_t>(host),
                     .to = to->second,
                     .next = Stage::nic_up};
  lane_of(flights_[index]).traffic.flying_bytes += envelope.wire_bytes;
  schedule(index, now);
  return true;
}

void Fabric::step(Instant now, const Deliver& deliver) {
  while (!events_.empty() && events_.front().at <= now) {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = events_.back();
    events_.pop_back();
    fly(event, deliver);
  }
}

void Fabric::fly(const Event& event, const Deliver& deliver) {
  Flight& flight = flights_[event.flight];
  while (flight.next != Stage::arrived) {
    const auto at = pass(flight, event.at);
    if (!at) return retire(event.flight);
    flight.next = static_cast<Stage>(static_cast<int>(flight.next) + 1);
    if (*at > event.at) return schedule(event.flight, *at);
  }
  Traffic& traffic = lane_of(flight).traffic;
  traffic.bytes += flight.wire_bytes;
  traffic.packets += flight.packets;
  deliver(flight.to, std::move(flight.frame), event.at);
  retire(event.flight);
}

/// When the packet is through the stage that is next; nothing when it ends there.
std::optional<Instant> Fabric::pass(Flight& flight, Instant now) {
  Lane& lane = lane_of(flight);
  if (flight.next == Stage::wire) {
    const double survival = lane.link.outage ? 0 : std::pow(1 - lane.link.loss, flight.packets);
    if (survival == 1 || prng_.chance(survival)) return lane.wire.carry(now, lane.link, prng_);
    lane.traffic.lost += flight.packets;
    return std::nullopt;
  }
  Gate* gate = gate_of(flight);
  const auto at = gate == nullptr ? now : gate->admit(now, flight.wire_bytes);
  if (!at) lane.traffic.dropped += flight.packets;
  return at;
}

Fabric::Lane& Fabric::lane_of(const Flight& flight) {
  return lanes_[hosts_[flight.from].site * sites_ + hosts_[flight.to].site];
}

Gate* Fabric::gate_of(const Flight& flight) {
  HostGates &from = hosts_[flight.from], &to = hosts_[flight.to];
  const bool lan = from.site == to.site;
  switch (flight.next) {
    case Stage::nic_up:
      return &from.up;
    case Stage::egress:
      return lan ? nullptr : &site_gates_[from.site].up;
    case Stage::link:
      return &lane_of(flight).gate;
    case Stage::ingress:
      return lan ? nullptr : &site_gates_[to.site].down;
    case Stage::nic_down:
      return &to.down;
    case Stage::wire:
    case Stage::arrived:
      break;
  }
  return nullptr;
}

void Fabric::schedule(std::uint32_t index, Instant at) {
  events_.push_back({.at = at, .order = next_order_++, .flight = index});
  std::push_heap(events_.begin(), events_.end());
}

void Fabric::retire(std::uint32_t index) {
  lane_of(flights_[index]).traffic.flying_bytes -= flights_[index].wire_bytes;
  flights_[index].frame = {};
  free_flights_.push_back(index);
}

void Fabric::change(std::size_t from, std::size_t to, const Link& link, Instant now) {
  Lane& lane = lanes_[from * sites_ + to];
  lane.link = link;
  if (link.bit_s == lane.gate.bit_s()) return;
  const double factor = lane.gate.change(link.bit_s, now);
  for (Event& event : events_) {
    const Flight& flight = flights_[event.flight];
    const bool waits = flight.next == Stage::wire && &lane_of(flight) == &lane;
    if (waits && event.at > now) event.at = now + from_seconds(to_seconds(event.at - now) * factor);
  }
  std::make_heap(events_.begin(), events_.end());
}

Traffic Fabric::traffic(std::size_t from, std::size_t to, Instant now) const {
  const Lane& lane = lanes_[from * sites_ + to];
  Traffic traffic = lane.traffic;
  traffic.queued_bytes = lane.gate.queued_bytes(now);
  return traffic;
}

Queued Fabric::host_queued(std::size_t host, Instant now) const {
  return {hosts_[host].up.queued_bytes(now), hosts_[host].down.queued_bytes(now)};
}

Queued Fabric::site_queued(std::size_t site, Instant now) const {
  return {site_gates_[site].up.queued_bytes(now), site_gates_[site].down.queued_bytes(now)};
}

}  // namespace tw::wan
