// SPDX-License-Identifier: Apache-2.0
#include "wan/topology.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::wan {

bool Topology::lossy() const {
  return std::any_of(links.begin(), links.end(), [](const Link& link) { return link.loss > 0; });
}

std::vector<Host> Topology::hosts() const {
  std::vector<Host> hosts;
  for (std::size_t site = 0; site < sites.size(); ++site) {
    for (int number = 1; number <= sites[site].hosts; ++number) {
      const std::string& its = sites[site].name;
      hosts.push_back({.site = site,
                       .number = number,
                       .name = sites[site].hosts == 1 ? its : fmt::format("{}-{}", its, number),
                       .address = fmt::format("10.77.{}.{}", site + 1, number)});
    }
  }
  return hosts;
}

double payload_share(const Topology& topology) {
  constexpr double kHeaders = 20 + 20 + 12;
  return 1 - kHeaders / topology.mtu;
}

}  // namespace tw::wan
