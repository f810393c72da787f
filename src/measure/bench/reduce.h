// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/local/child.h"
#include "measure/bench/arguments.h"
#include "measure/bench/result.h"

namespace tw::measure {

inline constexpr std::uint64_t kPeersOnLoopback = 2;

struct ReduceOptions {
  std::string topology;     ///< a file or a name that tw-wan knows; empty: the loopback
  std::uint64_t peers = 0;  ///< 0: as many as the topology has hosts, 2 on the loopback
  std::uint64_t bytes = 0;
  codec::Codec codec = codec::Codec::fp32;
  Round warm_up = 0;
  Round rounds = 1;
  Round turns = 1;
  std::uint64_t streams = 0;  ///< 0: as many as help
  bool tls = false;           ///< of tradewind's peers; the others have none
  swarm::SiteUse sites = swarm::SiteUse::automatic;
  std::vector<std::string> baselines;
  std::optional<Disturbance> disturbance;
  std::optional<TroubleTime> trouble;

  /// As far as it is known without the topology.
  std::uint64_t most_peers() const {
    if (peers != 0) return peers;
    return topology.empty() ? kPeersOnLoopback : launch::kMaxLocalPeers;
  }
};

/// Shows progress.
using Say = std::function<void(const std::string& line)>;

/// `tw bench reduce`: all systems take turns.
Result<BenchResult> reduce(const ReduceOptions& options, const Say& say);

}  // namespace tw::measure
