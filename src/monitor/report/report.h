// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/report/held_history.h"
#include "monitor/report/missing.h"
#include "world/events.h"

namespace tw::monitor {

/// Where a value is optional, the logs do not hold what it would take to know it.
struct PeerSummary {
  PeerId id;
  std::uint64_t rounds = 0;   ///< to which it contributed
  std::uint64_t samples = 0;  ///< in records that it saw committed
  std::string digest;         ///< of the last parameters that it logged
  std::optional<std::uint64_t> bytes_sent, bytes_received;
  std::optional<double> hours;      ///< machine_hours(); nothing: its log is not here
  std::optional<double> usd_per_h;  ///< as its events tell
  std::optional<double> usd;        ///< of these hours

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
  /// Its microbatches of this round, done or only leased to it; nothing: no log says so. What a leader had
  /// that was lost is in no log.
  std::optional<std::uint64_t> microbatches_again;

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

/// What a peer was told of its machine.
struct GivenNotice {
  PeerId peer;
  Round round = 0;
  std::string source;                ///< "aws"
  std::string kind;                  ///< "preempt"
  std::optional<double> deadline_s;  ///< that it left; nothing: no deadline
  std::optional<double> used_s;      ///< until its process ended, where the notice makes it leave

  bool operator==(const GivenNotice&) const = default;
};

/// A peer that left before the round ended: another one has what it did.
struct HandOver {
  PeerId peer;
  Round round = 0;
  PeerId to;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::optional<double> took_s;        ///< from the order until the peer might go
  std::optional<double> round_left_s;  ///< that the round would have taken with it, as its leader reckoned

  bool operator==(const HandOver&) const = default;
};

/// What peers had done or taken when they went.
struct Leavings {
  std::uint64_t samples_handed_over = 0;
  /// Microbatches of peers that were lost or shut out: done, under way or only leased. A log does not tell
  /// which.
  std::uint64_t microbatches_again = 0;
  std::optional<std::uint64_t> samples_again;  ///< in them, at most; nothing: the logs do not say how many

  bool operator==(const Leavings&) const = default;
};

struct StoreTraffic {
  std::uint64_t bytes = 0, requests = 0;
  std::optional<double> usd = 0;           ///< for the bytes; nothing: not known
  std::optional<double> requests_usd = 0;  ///< nothing: not known

  bool operator==(const StoreTraffic&) const = default;
};

/// What all peers read from one store and wrote into it; requests to list are among the written ones.
struct StoreUsed {
  std::string store;
  StoreTraffic read, written;

  bool operator==(const StoreUsed&) const = default;
};

/// What the run cost, as far as prices are known (tell_cost()): as Money of the board.
struct Cost {
  double machine_hours = 0;   ///< of all peers whose logs are here
  double priced_hours = 0;    ///< of those whose price is known
  std::optional<double> usd;  ///< machines and traffic
  /// The traffic alone, by the built-in tariffs, and requests to stores alone: the part whose price is known.
  /// Nothing: there was some, and no price of it is known.
  std::optional<double> egress_usd = 0, requests_usd = 0;
  /// The part of usd for samples that were given out again, at most: their share of all that were leased.
  std::optional<double> usd_again;

  bool operator==(const Cost&) const = default;
};

/// What the event logs of a run say, all of it recomputable from them.
struct Summary {
  std::uint64_t rounds = 0;           ///< committed, in some log
  std::uint64_t unlogged_rounds = 0;  ///< between them, in no log; their samples count
  std::uint64_t samples = 0;          ///< in committed rounds
  std::uint64_t samples_skipped = 0;  ///< of these: the run went on without them
  /// That rounds left to the next one, which took them in place of new ones: so many fewer than `rounds`
  /// whole batches are `samples`. Nothing: the logs are not here.
  std::optional<std::uint64_t> samples_carried;
  double samples_per_s = 0;              ///< from the first accumulation to the last commit
  std::optional<double> loss;            ///< of the last batch
  std::optional<double> calc_s, comm_s;  ///< means per round, as its leader saw them
  std::optional<double> granularity;     ///< calc_s / comm_s
  std::vector<PeerSummary> peers;        ///< by id
  /// Every round that was applied gave the same parameters on all peers that applied it, and those that were
  /// there to the end have the last round that is common to them. False when nothing was applied.
  bool identical = false;
  bool insecure = false;             ///< some peer went without TLS (--insecure)
  std::string difference;            ///< the first digests that differ, in words
  std::vector<LostPeer> lost;        ///< by time
  std::vector<JoinedPeer> joined;    ///< by time
  std::vector<LeftPeer> left;        ///< on their own will, by time
  std::vector<GivenNotice> notices;  ///< by time
  std::vector<HandOver> handovers;   ///< by time
  Leavings leavings;
  std::vector<DroppedRounds> dropped;  ///< in no other count but that of hours and their cost
  Cost cost;
  std::vector<StoreUsed> stores;  ///< by name
  /// What the logs lack, by peer: rounds, samples and losses of then may not be counted.
  std::vector<MissingEvents> missing;
};

/// A pure function of the logs (one for each writer; the launcher may have one). Logs of several
/// machines are put on one time line by their wall clocks; those of one machine share the monotonic clock.
Summary summarize(const std::vector<std::vector<LogEntry>>& logs);

/// The measurement of that name.
std::optional<double> number_in(const world::Event& event, std::string_view name);

}  // namespace tw::monitor
