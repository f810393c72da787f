// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "plan/model/throughput.h"

namespace tw::plan {

/// What a pattern takes to average, beside calculating.
struct RoundTime {
  double comm_s = 0;
  double factor = 1;                         ///< of its 80 % range
  std::vector<std::vector<double>> sent_mb;  ///< Prediction::sent_mb
  std::string limit;
};

/// Between groups of peers.
struct Lines {
  std::vector<double> card;               ///< of a peer, each way; bytes/s
  std::vector<std::vector<double>> pair;  ///< from a peer of one group to one of another
  double rtt_s = 0;                       ///< the longest
  std::string slowest;                    ///< pair
};

Lines lines_of(const Workload& workload, const std::vector<PeerGroup>& peers,
               const market::NetworkProfile& network);

/// Seconds for a vector of one byte from peers of several groups, with the shares that take least.
double flat_seconds_per_byte(const std::vector<int>& peers, const Lines& lines);

/// Wire and processor work side by side.
struct RoundParts {
  double wire_s = 0;
  double processor_s = 0;
  double latency_s = 0;
  double update_s = 0;

  double comm_s() const { return std::max(wire_s, processor_s) + latency_s + update_s; }
};

/// most_sent_mb: of one peer.
RoundParts round_parts(const Workload& workload, double wire_s_per_byte, double most_sent_mb,
                       double latency_s);

double latency_s(Pattern pattern, int peers, double rtt_s);

/// Where each peer sends so much in all, evenly to all others.
std::vector<std::vector<double>> sent_evenly(const std::vector<PeerGroup>& peers, double mb_per_peer);

/// Until the bytes of a round have moved, at the full rate of lines and streams.
double wire_seconds(const Workload& workload, const std::vector<PeerGroup>& peers,
                    const market::NetworkProfile& network);

/// For tradewind, ring and parameter server, which can be derived; all lines and streams run at their rate.
RoundTime derived_round(const Workload& workload, const std::vector<PeerGroup>& peers,
                        const Knowledge& knowledge);
RoundTime derived_round(const Workload& workload, const std::vector<PeerGroup>& peers, const Lines& lines);

}  // namespace tw::plan
