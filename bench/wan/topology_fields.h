// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "wan/topology.h"

/// The vocabulary of topology files: reading, complaints and the reference are made of these tables.
namespace tw::wan {

/// One key with a scalar value. `assign` refuses what is not as `expected` says.
template <class Target>
struct Field {
  std::string_view section;  ///< "", "sites" or "links"
  std::string_view name;
  std::string_view expected;
  std::string_view meaning;
  bool (*assign)(std::string_view value, Target& target);
};

/// A site as it stands in a file: its LAN is a link of the testbed.
struct SiteEntry {
  Site site;
  Duration lan_rtt = std::chrono::microseconds(300);
};

/// The top of a file: what holds for all sites unless they say otherwise.
struct TopEntry {
  Topology topology;
  TcpLimits tcp;
};

std::span<const Field<TopEntry>> top_fields();
std::span<const Field<SiteEntry>> site_fields();
std::span<const Field<Link>> link_fields();

}  // namespace tw::wan
