// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/topology.h"

#include <algorithm>
#include <cmath>

namespace tw::sim {

Quality LinkSpec::draw(Prng& random) const {
  const double latency = latency_s.draw(random);
  return {from_seconds(latency), from_seconds(latency * jitter.draw(random)), bytes_per_s.draw(random),
          static_cast<std::uint64_t>(window_bytes.draw(random))};
}

PeerSpec PeerSpec::draw(Prng& random, const SiteSpec& site, int number) {
  PeerSpec peer;
  peer.site = number;
  peer.samples_per_s = site.samples_per_s.draw(random);
  peer.line = {site.up_bytes_per_s.draw(random), site.down_bytes_per_s.draw(random)};
  peer.grain = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(site.grain.draw(random))));
  if (site.job_s.most > 0) peer.job = from_seconds(site.job_s.draw(random));
  return peer;
}

}  // namespace tw::sim
