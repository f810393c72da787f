// SPDX-License-Identifier: Apache-2.0
#include "sim/stays.h"

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

Duration hours(double h) { return from_seconds(3600 * h); }

/// An hour at which shortages strike, one after the other.
std::vector<Duration> strikes(const ZoneShocks& shocks, Duration length, Prng& random) {
  std::vector<Duration> times;
  if (shocks.per_day <= 0) return times;
  for (double h = 0;;) {
    h -= std::log(1 - random.uniform()) * 24 / shocks.per_day;
    if (hours(h) >= length) return times;
    times.push_back(hours(h));
  }
}

}  // namespace

std::vector<Stay> generate_stays(const Generator& generator, std::uint64_t seed) {
  std::vector<std::vector<Duration>> shocks;
  for (int zone = 0; zone < generator.zones; ++zone) {
    Prng random(mix(seed, 1000 + static_cast<std::uint64_t>(zone)));
    shocks.push_back(strikes(generator.shocks, generator.length, random));
  }
  std::vector<Stay> stays;
  for (int slot = 0; slot < generator.peers; ++slot) {
    Prng random(mix(mix(seed, 1), static_cast<std::uint64_t>(slot)));
    for (Duration t{}; t < generator.length;) {
      Stay stay{slot, t, t + generator.lifetimes.draw(random), true};
      for (const Duration shock : shocks[static_cast<std::size_t>(slot % generator.zones)]) {
        if (shock <= t || shock >= stay.goes || !random.chance(generator.shocks.share)) continue;
        stay.goes = shock;
        break;
      }
      t = stay.goes + generator.replacement.draw(random);
      if (stay.goes >= generator.length) stay = {slot, stay.comes, generator.length, false};
      if (stay.goes > stay.comes) stays.push_back(stay);
    }
  }
  std::stable_sort(stays.begin(), stays.end(),
                   [](const Stay& a, const Stay& b) { return a.comes < b.comes; });
  return stays;
}

}  // namespace tw
