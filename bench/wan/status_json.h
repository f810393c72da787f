// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "wan/fabric.h"
#include "wan/load.h"
#include "wan/topology.h"

namespace tw::wan {

/// The data of `status` beyond the topology: indexed like Topology::links and Topology::hosts().
struct BoxState {
  int pid = 0;
  double up_s = 0;
  Load load;
  std::vector<Link> links;  ///< as they are now
  std::vector<Traffic> traffic;
  std::vector<double> bit_s;  ///< carried in the last second
  std::vector<Queued> hosts;
  std::vector<Queued> sites;
  std::uint64_t wire_bytes = 0;
  double cpu_s = 0;
};

/// The testbed as it is built: hosts, addresses, rates (null: no limit), and the links between sites.
std::string topology_json(const Topology& topology);

std::string status_json(const Topology& topology, const BoxState& state);

/// status_json() as tables for people. The text must be whole.
std::string status_text(const std::string& json);

}  // namespace tw::wan
