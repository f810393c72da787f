// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "monitor/board/board.h"
#include "monitor/fold/journal.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/held_history.h"
#include "monitor/logs/log_source.h"
#include "monitor/report/missing.h"

/// What `tw report` and summary.json tell: the board, and what only whole logs know.
namespace tw::monitor {

/// Optional values are those that the board of a running peer does not have.
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

struct Summary {
  Board board;
  std::uint64_t rounds = 0;           ///< committed, in some log
  std::uint64_t unlogged_rounds = 0;  ///< between them, in no log; their samples count
  std::uint64_t samples = 0;          ///< in committed rounds
  /// From the first accumulation to the last commit; nothing: the first round is not known.
  std::optional<double> samples_per_s;
  std::optional<double> calc_s, comm_s;  ///< means per round, of the peer that was ready last
  std::optional<double> loss;            ///< of the last batch
  /// Every round that was applied gave the same parameters on all peers that applied it. False when none was.
  bool identical = false;
  std::string difference;            ///< the first digests that differ, in words
  std::vector<LostPeer> lost;        ///< by time
  std::vector<JoinedPeer> joined;    ///< by time
  std::vector<GivenNotice> notices;  ///< by time

  // Only whole logs tell these: of a running peer they are nothing.
  std::optional<std::vector<HandOver>> handovers;  ///< by time
  /// That rounds left to a later one, which took them in place of new ones: so many fewer than `rounds`
  /// whole batches are `samples`.
  std::optional<std::uint64_t> samples_carried;
  /// Microbatches of peers that were lost or shut out: done, under way or only leased. A log does not tell
  /// which.
  std::optional<std::uint64_t> microbatches_again;
  std::optional<std::uint64_t> samples_again;  ///< in them, at most; nothing: no log says how many
  std::optional<bool> insecure;                ///< some peer went without TLS (--insecure)
  std::vector<DroppedRounds> dropped;          ///< in no other count but that of hours and their cost
  /// What the logs lack, by peer: rounds, samples and losses of then may not be counted.
  std::vector<MissingEvents> missing;

  std::optional<double> granularity() const;

  /// The part of the cost for samples_again: their share of all that were leased.
  std::optional<double> usd_again() const;
};

/// The summary of a running peer.
Summary summary_of(Board board);

/// Whether the writers of logs still go on: if not, a log without a stop has lost its end.
struct Writers {
  bool ended = false;
  double now_s = 0;  ///< seconds since 1970: a run that is dead by then (Board::dead_since_s) has ended, too
};

/// The summary of whole logs, one for each writer; the launcher may have one. They are put on one
/// time line by their wall clocks; those of one machine share the monotonic clock. Goes through the logs
/// several times, and keeps the facts of rounds, not the entries. Errors: of LogSource.
Result<Summary> summarize(const LogSource& logs, JournalOptions options = {}, Writers writers = {});

/// The same of logs in memory.
Summary summarize(const std::vector<std::vector<LogEntry>>& logs, JournalOptions options = {},
                  Writers writers = {});

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

/// By name.
std::vector<StoreUsed> stores_of(const std::vector<BoardLink>& links);

}  // namespace tw::monitor
