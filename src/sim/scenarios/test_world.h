// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include "sim/virtual/world.h"

/// For stories of a few peers in a small world.
namespace tw::sim {

inline constexpr double kMbit = 125e3;  // bytes/s

/// Small rounds with vectors that count as 256 KB. Paths of 10 ms one way and 200 Mbit/s. The run begins when
/// all peers of the sites are linked; a side without a majority waits 3 s.
inline WorldOptions small_world(std::vector<SiteSpec> sites, Round rounds) {
  WorldOptions options;
  options.run.model = "synthetic";
  options.run.batch.size = 64;
  options.run.microbatch = 4;
  options.run.rounds = rounds;
  options.run.mode.digest_every = 1;
  options.run.codec = codec::Codec::fp32;
  options.run.patience = std::chrono::seconds(3);
  options.model.parameters = 256;
  options.bulk_scale = 250;
  options.wait_for = 0;
  for (const SiteSpec& site : sites) options.wait_for += static_cast<std::uint32_t>(site.peers);
  options.sites = std::move(sites);
  options.links = {{"", "", 0.01, 0, 200 * kMbit, 2 << 20}};
  return options;
}

}  // namespace tw::sim
