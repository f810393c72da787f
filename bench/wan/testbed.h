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

/// Where a testbed keeps what others need to find it: /run/tw-wan/NAME, and one namespace for each host.
struct TestbedPlace {
  std::string testbed;  ///< name of the topology

  std::string folder() const { return "/run/tw-wan/" + testbed; }

  std::string socket() const { return folder() + "/socket"; }

  std::string lock() const { return folder() + "/lock"; }

  std::string hosts_file() const { return folder() + "/hosts"; }

  std::string log() const { return folder() + "/log"; }

  std::string netns_prefix() const { return "tw-wan." + testbed + "."; }

  std::string netns(const Host& host) const { return netns_prefix() + host.name; }
};

/// Held by the box of a testbed as long as it lives. Nothing: another process holds it.
Result<std::optional<Fd>> lock_testbed(const TestbedPlace& place);

/// Removes what testbeds left behind whose box is dead; returns their names.
Result<std::vector<std::string>> remove_dead_testbeds();

/// Removes the namespaces of a testbed with all processes in them, and its folder. The caller holds its lock.
Status remove_testbed(const TestbedPlace& place);

struct Testbed {
  std::vector<Tun> tuns;     ///< in the order of Topology::hosts()
  bool kernel_nics = false;  ///< the kernel keeps the rates at which hosts send; else the box must
};

/// Makes the namespaces with their devices, and the hosts file. The caller holds the lock.
Result<Testbed> build_testbed(const Topology& topology, const TestbedPlace& place);

}  // namespace tw::wan
