// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "monitor/event_log_json.h"
#include "monitor/missing.h"
#include "world/events.h"

namespace tw::monitor {

/// Where a value is optional, the logs do not hold what it would take to know it.
struct PeerSummary {
  PeerId id;
  std::uint64_t rounds = 0;   ///< to which it contributed
  std::uint64_t samples = 0;  ///< in records that it saw committed
  std::string digest;         ///< of the last parameters that it logged
  std::optional<std::uint64_t> bytes_sent, bytes_received;

  bool operator==(const PeerSummary&) const = default;
};

struct LostPeer {
  PeerId peer;
  Round round = 0;
  /// From the kill, where an outside driver logged it, else from the last sign of life; to the first
  /// detection.
  std::optional<double> detected_s;
  /// Duration of the rounds from the loss to its detection, beyond as many undisturbed rounds near them
  /// (median).
  std::optional<double> extra_s;
  std::string why;

  bool operator==(const LostPeer&) const = default;
};

/// A peer that came after the first round, or came back after it was lost.
struct JoinedPeer {
  PeerId peer;
  Round round = 0;                ///< the first one in which it accumulates
  std::optional<double> seconds;  ///< from its launch (or return) to the commit of its first contribution

  bool operator==(const JoinedPeer&) const = default;
};

struct LeftPeer {
  PeerId peer;
  Round round = 0;

  bool operator==(const LeftPeer&) const = default;
};

/// What the event logs of a run say, all of it recomputable from them.
struct Summary {
  std::uint64_t rounds = 0;              ///< committed, in some log
  std::uint64_t unlogged_rounds = 0;     ///< between them, in no log; their samples count
  std::uint64_t samples = 0;             ///< in committed rounds
  double samples_per_s = 0;              ///< from the first accumulation to the last commit
  std::optional<double> test_accuracy;   ///< of the last evaluation, in [0, 1]
  std::optional<double> loss;            ///< of the last evaluation
  std::optional<double> calc_s, comm_s;  ///< means per round, as its leader saw them
  std::optional<double> granularity;     ///< calc_s / comm_s
  std::vector<PeerSummary> peers;        ///< by id
  /// Every round that was applied gave the same parameters on all peers that applied it, and those that were
  /// there to the end have the last round that is common to them. False when nothing was applied.
  bool identical = false;
  bool insecure = false;           ///< some peer went without TLS (--insecure)
  std::string difference;          ///< the first digests that differ, in words
  std::vector<LostPeer> lost;      ///< by time
  std::vector<JoinedPeer> joined;  ///< by time
  std::vector<LeftPeer> left;      ///< on their own will, by time
  /// What the logs lack, by peer: rounds, samples and losses of then may not be counted.
  std::vector<MissingEvents> missing;
};

/// A pure function of the logs (a log for each writer; that of `tw local` may be among them). Logs of several
/// machines are put on one time line by their wall clocks; those of one machine share the monotonic clock.
Summary summarize(const std::vector<std::vector<LogEntry>>& logs);

/// The measurement of that name.
std::optional<double> number_in(const world::Event& event, std::string_view name);

}  // namespace tw::monitor
