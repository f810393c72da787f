// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/machine_lifetimes.h"

#include <algorithm>
#include <cmath>

namespace tw::sim {
namespace {

Duration hours(double h) { return from_seconds(3600 * h); }

/// An hour at which shortages strike, one after the other.
std::vector<Duration> strikes(const market::ZoneShocks& shocks, Duration length, Prng& random) {
  std::vector<Duration> times;
  if (shocks.per_day <= 0) return times;
  for (double h = 0;;) {
    h -= std::log(1 - random.uniform()) * 24 / shocks.per_day;
    if (hours(h) >= length) return times;
    times.push_back(hours(h));
  }
}

}  // namespace

std::vector<MachineLifetime> generate_lifetimes(const Generator& generator, std::uint64_t seed) {
  std::vector<std::vector<Duration>> shocks;
  for (int zone = 0; zone < generator.zones; ++zone) {
    Prng random(mix(seed, 1000 + static_cast<std::uint64_t>(zone)));
    shocks.push_back(strikes(generator.shocks, generator.length, random));
  }
  std::vector<MachineLifetime> lifetimes;
  for (int slot = 0; slot < generator.peers; ++slot) {
    Prng random(mix(mix(seed, 1), static_cast<std::uint64_t>(slot)));
    for (Duration t{}; t < generator.length;) {
      MachineLifetime lifetime{slot, t, t + generator.lifetimes.draw(random), true};
      for (const Duration shock : shocks[static_cast<std::size_t>(slot % generator.zones)]) {
        if (shock <= t || shock >= lifetime.goes || !random.chance(generator.shocks.share)) continue;
        lifetime.goes = shock;
        break;
      }
      t = lifetime.goes + generator.replacement.draw(random);
      if (lifetime.goes >= generator.length) lifetime = {slot, lifetime.comes, generator.length, false};
      if (lifetime.goes > lifetime.comes) lifetimes.push_back(lifetime);
    }
  }
  std::stable_sort(lifetimes.begin(), lifetimes.end(),
                   [](const MachineLifetime& a, const MachineLifetime& b) { return a.comes < b.comes; });
  return lifetimes;
}

}  // namespace tw::sim
