// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "wan/packet.h"
#include "wan/shaping.h"
#include "wan/topology.h"

namespace tw::wan {

/// Packets forwarded and dropped between a pair of sites since the beginning.
struct Traffic {
  std::uint64_t bytes = 0;  ///< of IP packets, delivered
  std::uint64_t packets = 0;
  std::uint64_t dropped = 0;       ///< packets that found a queue full, of a link, a site or a host
  std::uint64_t lost = 0;          ///< packets lost by `loss` or an outage
  double queued_bytes = 0;         ///< before the link itself, now
  std::uint64_t flying_bytes = 0;  ///< under way anywhere between the two hosts
};

/// Bytes that wait, of one host or one site.
struct Queued {
  double up_bytes = 0;
  double down_bytes = 0;
};

/// All the links of a testbed: packets go in when a host sends them, and come out when another receives them.
/// A step machine; the packets are its own while they are under way.
class Fabric {
 public:
  using Deliver = std::function<void(std::size_t host, Frame frame, Instant due)>;

  /// kernel_nics: the hosts send no faster than their NIC by themselves.
  Fabric(const Topology& topology, bool kernel_nics, std::uint64_t seed);

  /// Takes the frame, unless no host of the testbed has its destination (then false). Times never go back,
  /// neither here nor in step().
  bool push(std::size_t host, const Envelope& envelope, Frame& frame, Instant now);

  Instant next_step() const { return events_.empty() ? kNever : events_.front().at; }

  void step(Instant now, const Deliver& deliver);

  /// Replaces a link; what waits before it goes at the new rate, what is on the wire arrives as it would
  /// have.
  void change(std::size_t from, std::size_t to, const Link& link, Instant now);

  const Link& link(std::size_t from, std::size_t to) const { return lanes_[from * sites_ + to].link; }

  Traffic traffic(std::size_t from, std::size_t to, Instant now) const;
  Queued host_queued(std::size_t host, Instant now) const;
  Queued site_queued(std::size_t site, Instant now) const;

 private:
  enum class Stage : std::uint8_t { nic_up, egress, link, wire, ingress, nic_down, arrived };

  struct Lane {
    Link link;
    Gate gate;
    Wire wire;
    Traffic traffic;
  };

  struct HostGates {
    std::size_t site;
    Gate up, down;
  };

  struct SiteGates {
    Gate up, down;  ///< egress and ingress
  };

  struct Flight {
    Frame frame;
    std::uint32_t wire_bytes;
    std::uint32_t packets;
    std::uint32_t from, to;  ///< hosts
    Stage next;
  };

  struct Event {
    Instant at;
    std::uint64_t order;
    std::uint32_t flight;
    bool operator<(const Event& other) const;
  };

  Lane& lane_of(const Flight& flight);
  Gate* gate_of(const Flight& flight);
  std::optional<Instant> pass(Flight& flight, Instant now);
  void fly(const Event& event, const Deliver& deliver);
  void schedule(std::uint32_t index, Instant at);
  void retire(std::uint32_t index);

  std::size_t sites_;
  std::vector<HostGates> hosts_;
  std::vector<SiteGates> site_gates_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::uint32_t, std::uint32_t> host_at_;  ///< by address
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::vector<Event> events_;  ///< heap, earliest first
  std::uint64_t next_order_ = 0;
  Prng prng_;
};

}  // namespace tw::wan
