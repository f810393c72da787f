// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "plan/model/throughput.h"

namespace tw::plan {

/// Averaging time of a pattern, beside calculating.
struct RoundTime {
  double comm_s = 0;
  double factor = 1;                         ///< of its 80 % range
  std::vector<std::vector<double>> sent_mb;  ///< Prediction::sent_mb
  std::string limit;
};

/// Bandwidth between groups of peers.
struct Lines {
  std::vector<double> card;               ///< of a peer, in each direction; bytes/s
  std::vector<std::vector<double>> pair;  ///< from a peer of one group to one of another
  double rtt_s = 0;                       ///< the longest
  std::string slowest;                    ///< the slowest pair
};

Lines lines_of(const Workload& workload, const std::vector<PeerGroup>& peers,
               const market::NetworkProfile& network);

/// Least seconds for a vector of one byte, averaged among peers of several groups, over all shares.
double flat_seconds_per_byte(const std::vector<int>& peers, const Lines& lines);

/// Transfer and processor work overlap.
struct RoundParts {
  double wire_s = 0;
  double processor_s = 0;
  double latency_s = 0;
  double update_s = 0;

  double comm_s() const { return std::max(wire_s, processor_s) + latency_s + update_s; }
};

/// most_sent_mb: of the peer that sends most.
RoundParts round_parts(const Workload& workload, double wire_s_per_byte, double most_sent_mb,
                       double latency_s);

double latency_s(Pattern pattern, int peers, double rtt_s);

/// Traffic if each peer sends this much in all, evenly to all others.
std::vector<std::vector<double>> sent_evenly(const std::vector<PeerGroup>& peers, double mb_per_peer);

/// Time until the bytes of a round have moved, with all links and streams at full rate.
double wire_seconds(const Workload& workload, const std::vector<PeerGroup>& peers,
                    const market::NetworkProfile& network);

/// For tradewind, ring and parameter server, which can be derived; all links and streams run at full rate.
RoundTime derived_round(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Knowledge& knowledge);
RoundTime derived_round(const Workload& workload, const std::vector<PeerGroup>& peers, const Lines& lines);

}  // namespace tw::plan
