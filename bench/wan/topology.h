// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "base/time.h"

namespace tw::wan {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Most bytes that a kernel buffers for one connection: the third numbers of tcp_rmem and tcp_wmem. These are
/// Linux's own.
struct TcpLimits {
  double receive_bytes = 6291456;
  double send_bytes = 4194304;
  bool operator==(const TcpLimits&) const = default;
};

/// One direction between two sites, or the LAN of one.
struct Link {
  double bit_s = kUnlimited;
  Duration delay{};   ///< one way
  Duration jitter{};  ///< up to so much more or less delay, uniform; packets keep their order
  double loss = 0;    ///< chance of each packet
  bool outage = false;
  bool operator==(const Link&) const = default;
};

struct Site {
  std::string name;
  int hosts = 1;
  double nic_up_bit_s = kUnlimited;  ///< of each host
  double nic_down_bit_s = kUnlimited;
  double egress_bit_s = kUnlimited;  ///< of all hosts together, towards other sites
  double ingress_bit_s = kUnlimited;
  TcpLimits tcp;
  bool operator==(const Site&) const = default;
};

struct Host {
  std::size_t site = 0;
  int number = 1;  ///< in its site, from 1
  std::string name;
  std::string address;
  bool operator==(const Host&) const = default;
};

/// A testbed as it is built: rates and, where asked for, buffers are divided by `scale` already. Rates count
/// the bytes of IP packets, headers included.
struct Topology {
  std::string name;
  std::string about;
  double scale = 1;
  bool scaled_buffers = false;
  int mtu = 1500;
  Duration queue = std::chrono::milliseconds(50);  ///< longest wait before a limited link; then packets drop
  std::string congestion = "cubic";                ///< tcp_congestion_control of every host
  std::vector<Site> sites;
  std::vector<Link> links;  ///< from * sites.size() + to

  Link& link(std::size_t from, std::size_t to) { return links[from * sites.size() + to]; }

  const Link& link(std::size_t from, std::size_t to) const { return links[from * sites.size() + to]; }

  bool lossy() const;

  /// Site by site: "a" where it has one host, else "a-1", "a-2"; addresses 10.77.SITE.HOST.
  std::vector<Host> hosts() const;
};

/// Share of a link's rate that is payload of a TCP stream: headers and timestamps take 52 bytes of each
/// packet.
double payload_share(const Topology& topology);

}  // namespace tw::wan
