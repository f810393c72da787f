// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/board/board.h"
#include "monitor/fold/delays.h"
#include "monitor/fold/evaluations.h"
#include "monitor/fold/ledger.h"
#include "monitor/fold/links.h"
#include "monitor/fold/peers.h"
#include "monitor/fold/rounds.h"
#include "monitor/fold/seen.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/held_history.h"
#include "monitor/logs/log_source.h"

/// From events to the board.
namespace tw::monitor {

struct JournalOptions {
  /// The price of the machine of a peer whose events tell none.
  std::map<PeerId, double> usd_per_h = {};
  bool keeps_to_usd_per_h = false;  ///< these prices alone count, not those of events
  EgressPrice egress = usual_egress_price;
  std::size_t lane_rounds = Board::kMostLaneRounds;  ///< of which there are spans
  bool whole = false;                                ///< keeps all rounds and interruptions, not the newest
  std::optional<double> budget_usd = {};             ///< nothing: what the newest start event tells
  bool may_lack_ends = false;  ///< its events are those of logs: one without a stop may have lost its end
};

/// Takes the events of a run in the order of time: those of all logs, on one time line by monitor::merge, or
/// those of its own peer as they happen. Pure; loop thread only; unless whole, bounded by the peers of the
/// run and by Board::kMost... Taking an event is cheap; the cost of a board grows with its size.
class Journal {
 public:
  explicit Journal(JournalOptions options = {});

  /// The interruption that the event tells of, if any. dropped: the event is about a round that the run
  /// dropped (HeldHistory): only the time of its peer counts, and that the peer stands apart from the others.
  std::optional<Interruption> take(const LogEntry& entry, bool dropped = false);

  /// A status of another peer, received at this time (seconds since 1970, by the local clock).
  void take(PeerId from, const wire::Status& status, double at_s);

  /// The status of this peer, from its own events.
  wire::Status status(PeerId self, double now_s) const;

  /// now_s: seconds since 1970; open spans end at it, or at the newest event if that is later.
  Board board(double now_s = 0) const;

  /// Rounds::loss.
  std::optional<double> loss() const { return rounds_.loss(); }

  const Peers& peers() const { return peers_; }

  const Rounds& rounds() const { return rounds_; }

  /// By the events of all peers.
  const Ledger& ledger() const { return ledger_; }

 private:
  void take_last_round(const event::Count& told);
  void take_start(const event::Start& start);
  void take_news(const Peers::News& news);
  wire::GonePeers gone_beside(PeerId self) const;
  SampleLedger ledger_of_peer(PeerId peer) const;
  SampleLedger whole_ledger() const;
  BoardPeer priced(BoardPeer peer) const;
  void add_peers(Board& board) const;
  bool lost_its_end(const Board& board, const BoardPeer& peer) const;
  void judge_end(Board& board) const;
  double patience_s(const Board& board) const;
  std::optional<double> dead_since(const Board& board) const;
  std::vector<Interruption> interruptions() const;

  JournalOptions options_;
  WallClocks clocks_;
  Peers peers_;
  Rounds rounds_;
  Ledger ledger_;                              ///< by all events: two leaders of a round may say the same
  std::map<PeerId, Ledger> own_ledgers_;       ///< by the events of each
  std::map<PeerId, ToldLedger> told_ledgers_;  ///< of others, which have no log here
  Links links_;
  Delays delays_;
  Evaluations evaluations_;
  std::optional<wire::GonePeers> gone_before_;  ///< as the first status said
  std::deque<Interruption> interruptions_;
  std::string run_;
  std::optional<Round> last_round_;  ///< as the newest start says, or a state that was put in place after it
  std::optional<double> budget_usd_;
  bool budget_drains_ = false;
  double newest_s_ = 0;
};

/// A journal of whole logs. history: of them. Errors: of LogSource.
Result<Journal> journal_of(const LogSource& logs, const HeldHistory& history, JournalOptions options = {});

/// The same of logs in memory (a log for each writer).
Journal journal_of(const std::vector<std::vector<LogEntry>>& logs, JournalOptions options = {});

}  // namespace tw::monitor
