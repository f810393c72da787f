// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "wan/netns.h"
#include "wan/topology.h"
#include "wan/tun.h"

namespace tw::wan {

/// Where a bed keeps what others need to find it: /run/tw-wan/NAME, and one namespace for each host.
struct BedPlace {
  std::string bed;  ///< name of the topology

  std::string folder() const { return "/run/tw-wan/" + bed; }

  std::string socket() const { return folder() + "/socket"; }

  std::string lock() const { return folder() + "/lock"; }

  std::string hosts_file() const { return folder() + "/hosts"; }

  std::string log() const { return folder() + "/log"; }

  std::string netns_prefix() const { return "tw-wan." + bed + "."; }

  std::string netns(const Host& host) const { return netns_prefix() + host.name; }
};

/// Held by the box of a bed as long as it lives. Nothing: another process holds it.
Result<std::optional<Fd>> lock_bed(const BedPlace& place);

/// Removes what beds left behind whose box is dead; returns their names.
Result<std::vector<std::string>> remove_dead_beds();

/// Removes the namespaces of a bed with all processes in them, and its folder. The caller holds its lock.
Status remove_bed(const BedPlace& place);

struct Bed {
  std::vector<Tun> tuns;     ///< in the order of Topology::hosts()
  bool kernel_nics = false;  ///< the kernel keeps the rates at which hosts send; else the box must
};

/// Makes the namespaces with their devices, and the hosts file. The caller holds the lock.
Result<Bed> build_bed(const Topology& topology, const BedPlace& place);

}  // namespace tw::wan
