// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "market/lifetimes.h"
#include "sim/scenarios/trace.h"

/// Draws machines with lifetimes measured on spot markets.
namespace tw::sim {

struct Generator {
  market::LifetimeLaw lifetimes;
  market::StartTimes replacement;  ///< time until a lost machine is replaced
  market::ZoneShocks shocks;
  int zones = 1;  ///< slot s is in zone s mod zones
  int peers = 16;
  Duration length{};
};

/// Sorted by time. All slots begin at 0 with new machines.
std::vector<MachineLifetime> generate_lifetimes(const Generator& generator, std::uint64_t seed);

}  // namespace tw::sim
