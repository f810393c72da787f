// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/ids.h"

namespace tw {

/// Each start of machine n of a launch is a peer of its own: its id is n times this, and the number of the
/// start.
inline constexpr std::uint64_t kIdsOfMachine = 1000;
inline constexpr std::uint64_t kMostMachines = 1'000'000;

/// The one name of a peer wherever people read it: "p3" for machine 3 of a launch, "p3-r2" for its second
/// start again, as in the names of its jobs; else its id. Files for programs have ids.
inline std::string peer_name(PeerId peer) {
  const std::uint64_t machine = peer.value / kIdsOfMachine, start = peer.value % kIdsOfMachine;
  if (machine == 0 || machine > kMostMachines) return to_string(peer);
  return "p" + std::to_string(machine) + (start == 0 ? "" : "-r" + std::to_string(start));
}

}  // namespace tw
