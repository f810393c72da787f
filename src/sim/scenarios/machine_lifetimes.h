// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "market/lifetimes.h"
#include "sim/scenarios/trace.h"

/// Machines that come and go as lifetimes measured on spot markets let them.
namespace tw::sim {

struct Generator {
  market::LifetimeLaw lifetimes;
  market::StartTimes replacement;  ///< a machine that went is followed by another after so long
  market::ZoneShocks shocks;
  int zones = 1;  ///< slot s is in zone s mod zones
  int peers = 16;
  Duration length{};
};

/// By time. All slots are taken at 0, by machines that are new then.
std::vector<MachineLifetime> generate_lifetimes(const Generator& generator, std::uint64_t seed);

}  // namespace tw::sim
