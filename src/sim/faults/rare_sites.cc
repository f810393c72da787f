// SPDX-License-Identifier: Apache-2.0
#include "sim/faults/rare_sites.h"

#include "base/prng.h"

namespace tw::sim {
namespace {

constexpr double kActive = 0.25;
constexpr double kFires = 0.25;

std::uint64_t hash_of(std::string_view site) {
  std::uint64_t hash = 0;
  for (const char c : site) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

bool RareSites::operator()(std::string_view name) {
  const std::uint64_t own = mix(seed_, hash_of(name));
  auto found = sites_.find(name);
  if (found == sites_.end()) found = sites_.emplace(name, Site{Prng(own).chance(kActive), 0, 0}).first;
  Site& site = found->second;
  if (!site.active || !Prng(mix(own, ++site.asked)).chance(kFires)) return false;
  ++site.fired;
  return true;
}

std::map<std::string, int> RareSites::fired() const {
  std::map<std::string, int> counts;
  for (const auto& [name, site] : sites_) {
    if (site.active) counts[name] = site.fired;
  }
  return counts;
}

}  // namespace tw::sim
