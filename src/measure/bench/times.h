// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/median.h"
#include "base/result.h"
#include "monitor/logs/event_log_json.h"

/// From event logs to the results of `tw bench reduce`; pure functions.
namespace tw::measure {

/// One round, from the logs of peers.
struct RoundTimes {
  double call_s = 0;                    ///< until the last peer has the plan
  double sums_s = 0;                    ///< until the last peer has handed out and added all contributions
  double mean_s = 0;                    ///< until the last peer holds the whole mean
  double commit_s = 0;                  ///< until the last peer knows that it is committed
  double cpu_s = 0;                     ///< of all these peers, each from its call to its commit
  double kernel_s = 0;                  ///< of that, what the kernel used
  double peak_memory = 0;               ///< bytes, of the peer that ever had most
  std::map<PeerId, double> bytes_sent;  ///< by each, in the same time
};

using PeerLogs = std::map<PeerId, std::vector<monitor::LogEntry>>;

/// Seconds since `begun`. An error names the peer without a call, gather or commit of this round.
Result<RoundTimes> times_of(const PeerLogs& logs, Round round, Instant begun);

/// When the round was first called, by any of these peers.
std::optional<Instant> first_call(const PeerLogs& logs, Round round);

/// The leader according to these logs; the first peer if they do not show it.
PeerId leader_in(const PeerLogs& logs);

}  // namespace tw::measure
