// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/throughput.h"

namespace tw {

/// What a pattern takes to average, beside calculating.
struct RoundTime {
  double comm_s = 0;
  double factor = 1;                         ///< of its 80 % range
  std::vector<std::vector<double>> sent_mb;  ///< Prediction::sent_mb
  std::string limit;
};

/// Where each peer sends so much in all, evenly to all others.
std::vector<std::vector<double>> sent_evenly(const std::vector<PeerGroup>& peers, double mb_per_peer);

/// Until the bytes of a round have moved, at the full rate of lines and streams.
double wire_seconds(const Workload& workload, const std::vector<PeerGroup>& peers,
                    const NetworkProfile& network);

/// Of tradewind, ring and parameter server, which can be derived; all lines and streams taken at their rate.
RoundTime derived_round(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Knowledge& knowledge);

}  // namespace tw
