// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/median.h"
#include "base/result.h"

namespace tw::monitor {
namespace {

/// Undisturbed rounds on each side that give the usual time of a round.
constexpr std::size_t kNeighbours = 5;

/// What only the events tell of an interruption of the board. Takes each event after the journal.
class Aftermath {
 public:
  /// came: the interruption that the journal found in the event; from_lost: its writer counted as lost
  /// before.
  void take(const LogEntry& entry, const std::optional<Interruption>& came, const Journal& journal,
            bool from_lost);

  /// Fills in what it knows of the interruptions that are on the board.
  void tell(Summary& summary) const;

 private:
  struct Loss {
    Interruption on_board;
    Instant at;     ///< on_board.at_s
    Instant begun;  ///< killed, or last sign of life
    Instant detected;
    LostPeer told;
  };

  struct Arrival {
    Interruption on_board;
    std::optional<Instant> since;
    bool accumulates = false;
    JoinedPeer told;
  };

  struct Notice {
    Instant at;
    bool goes = false;
    GivenNotice told;
  };

  void take_sign_of_life(const LogEntry& entry, const std::optional<Interruption>& came);
  void take_loss(const LogEntry& entry, const std::optional<Interruption>& came);
  void take_handover(const LogEntry& entry, const event::Handover& told);
  void take_notice(const LogEntry& entry, const event::Notice& told);
  void take_stop(const LogEntry& entry);

  std::map<PeerId, Instant> since_;  ///< its launch, or its return after it was lost
  std::vector<Loss> losses_;
  std::vector<Arrival> arrivals_;
  std::vector<Notice> notices_;
  std::vector<HandOver> handovers_;
  std::set<Round> disturbed_;  ///< a peer joined, left or was lost
  bool insecure_ = false;
};

/// A peer that was launched by a driver begins then, not with its first event.
void Aftermath::take_sign_of_life(const LogEntry& entry, const std::optional<Interruption>& came) {
  const world::Event& event = entry.event;
  const bool by_driver = entry.writer == PeerId{};
  if (by_driver && (!event.as<event::Start>() || !event.peer)) return;
  since_.try_emplace(by_driver ? *event.peer : entry.writer, event.at);
  if (came && came->kind == Interruption::Kind::joined) {
    const auto since = since_.find(came->peer);
    arrivals_.push_back({*came,
                         since == since_.end() ? std::nullopt : std::optional(since->second),
                         false,
                         {.peer = came->peer, .round = came->round, .seconds = {}}});
  }
  for (Arrival& arrival : arrivals_) {
    if (arrival.told.peer != entry.writer) continue;
    if (event.as<event::Accumulate>() && !arrival.accumulates) {
      arrival.accumulates = true;
      arrival.told.round = event.round;
    }
    const auto* commit = event.as<event::Commit>();
    const bool contributes = commit && commit->samples > 0;
    if (!arrival.since) arrival.since = event.at;
    if (contributes && !arrival.told.seconds) arrival.told.seconds = to_seconds(event.at - *arrival.since);
  }
}

/// A kill, or the first word of others about a loss begins one; the first word may come after the kill, and
/// need not have the time of silence.
void Aftermath::take_loss(const LogEntry& entry, const std::optional<Interruption>& came) {
  const world::Event& event = entry.event;
  const auto* lost = event.as<event::Lost>();
  const event::Measure silent_s = lost ? lost->silent_s : std::nullopt;
  const Instant last_sign = silent_s ? event.at - from_seconds(*silent_s) : event.at;
  if (came) {
    losses_.push_back({*came,
                       event.at,
                       last_sign,
                       lost ? event.at : kNever,  // killed
                       {.peer = came->peer,
                        .round = came->round,
                        .detected_s = silent_s,
                        .extra_s = {},
                        .why = came->detail,
                        .microbatches_again = {}}});
    since_.erase(came->peer);
    return;
  }
  const auto loss = std::ranges::find(losses_.rbegin(), losses_.rend(), *event.peer,
                                      [](const Loss& l) { return l.told.peer; });
  if (loss == losses_.rend() || loss->told.detected_s) return;
  if (loss->detected == kNever) {
    loss->detected = event.at;
    loss->told.round = event.round;
    loss->told.why = event.why;
  } else if (silent_s && event.round == loss->told.round) {
    loss->begun = std::min(loss->detected, last_sign);
  } else {
    return;
  }
  loss->told.detected_s = to_seconds(loss->detected - loss->begun);
}

void Aftermath::take_handover(const LogEntry& entry, const event::Handover& told) {
  handovers_.push_back({.peer = entry.writer,
                        .round = entry.event.round,
                        .to = *entry.event.peer,
                        .samples = told.samples.value_or(0),
                        .bytes = told.bytes.value_or(0),
                        .took_s = told.took_s,
                        .round_left_s = told.round_left_s});
}

void Aftermath::take_notice(const LogEntry& entry, const event::Notice& told) {
  notices_.push_back({entry.event.at,
                      told.goes(),
                      {.peer = entry.writer,
                       .round = entry.event.round,
                       .source = told.source,
                       .kind = std::string(name_of(told.cause)),
                       .deadline_s = told.deadline_s,
                       .used_s = {}}});
}

void Aftermath::take_stop(const LogEntry& entry) {
  for (Notice& notice : notices_)
    if (notice.goes && notice.told.peer == entry.writer && !notice.told.used_s)
      notice.told.used_s = to_seconds(entry.event.at - notice.at);
}

void Aftermath::take(const LogEntry& entry, const std::optional<Interruption>& came, const Journal& journal,
                     bool from_lost) {
  const world::Event& event = entry.event;
  take_sign_of_life(entry, came);
  const auto* handover = event.as<event::Handover>();
  const bool disturbs = came && came->kind != Interruption::Kind::notice && !handover;
  if (disturbs || event.as<event::Join>()) disturbed_.insert(event.round);
  if (event.as<event::Stop>()) take_stop(entry);
  if (const auto* start = event.as<event::Start>()) insecure_ |= start->insecure;
  if (const auto* notice = event.as<event::Notice>()) take_notice(entry, *notice);
  if (handover && event.peer) take_handover(entry, *handover);
  if (!event.peer || from_lost) return;
  if (event.as<event::Kill>() || event.as<event::Lost>()) take_loss(entry, came);
  for (Loss& loss : losses_)
    if (loss.told.peer == *event.peer && loss.told.round == event.round)
      loss.told.microbatches_again = journal.ledger().again_of(event.round, *event.peer);
}

/// Rounds of the board that follow one another: each takes from the commit of the one before to its own.
struct Stretch {
  Round round = 0;
  double begin_s = 0, end_s = 0;

  bool meets(double from_s, double to_s) const { return begin_s <= to_s && from_s < end_s; }
};

std::vector<Stretch> stretches(const std::vector<BoardRound>& rounds) {
  std::vector<Stretch> result;
  std::optional<double> before_s;
  for (const BoardRound& round : rounds) {
    if (!round.committed_s) continue;
    result.push_back({round.round, before_s.value_or(round.begun_s), *round.committed_s});
    before_s = round.committed_s;
  }
  return result;
}

std::optional<double> extra_seconds(const std::vector<Stretch>& rounds, const Stretch& loss,
                                    const auto& is_disturbed) {
  double taken_s = 0, count = 0;
  std::vector<double> before_s, after_s;
  for (const Stretch& round : rounds) {
    const double duration_s = round.end_s - round.begin_s;
    if (round.meets(loss.begin_s, loss.end_s)) {
      taken_s += duration_s;
      count += 1;
    } else if (!is_disturbed(round)) {
      (round.end_s <= loss.begin_s ? before_s : after_s).push_back(duration_s);
    }
  }
  if (before_s.size() > kNeighbours) before_s.erase(before_s.begin(), before_s.end() - kNeighbours);
  if (after_s.size() > kNeighbours) after_s.resize(kNeighbours);
  before_s.insert(before_s.end(), after_s.begin(), after_s.end());
  if (before_s.empty() || count == 0) return std::nullopt;
  return taken_s - count * median(std::move(before_s));
}

void Aftermath::tell(Summary& summary) const {
  const Board& board = summary.board;
  const auto is_there = [&](const Interruption& one) {
    return std::ranges::find(board.interruptions, one) != board.interruptions.end();
  };
  const auto stretch_of = [](const Loss& loss) {
    const auto on_board = [&](Instant at) { return loss.on_board.at_s + to_seconds(at - loss.at); };
    const Instant end = loss.detected == kNever ? loss.begun : loss.detected;
    return Stretch{loss.told.round, on_board(loss.begun), on_board(end)};
  };
  const auto is_disturbed = [&](const Stretch& round) {
    return disturbed_.contains(round.round) || std::ranges::any_of(losses_, [&](const Loss& loss) {
             const Stretch lost = stretch_of(loss);
             return is_there(loss.on_board) && round.meets(lost.begin_s, lost.end_s);
           });
  };
  const std::vector<Stretch> rounds = stretches(board.rounds);
  summary.lost.clear();
  summary.joined.clear();
  for (const Loss& loss : losses_) {
    if (!is_there(loss.on_board)) continue;
    summary.lost.push_back(loss.told);
    if (loss.detected != kNever)
      summary.lost.back().extra_s = extra_seconds(rounds, stretch_of(loss), is_disturbed);
  }
  for (const Arrival& arrival : arrivals_)
    if (is_there(arrival.on_board)) summary.joined.push_back(arrival.told);
  summary.notices.clear();
  for (const Notice& notice : notices_) summary.notices.push_back(notice.told);
  summary.handovers = handovers_;
  summary.insecure = insecure_;
}

/// What the logs lack.
class Absence {
 public:
  void take(const LogEntry& entry, std::size_t log, bool dropped) {
    Log& of = logs_[log];
    of.gaps.take(entry);
    of.writer = entry.writer;
    of.round = entry.event.round;
    of.unix_nanos = entry.unix_nanos;
    rounds_.take(entry, dropped);
  }

  /// ended: no writer goes on.
  void tell(const Journal& journal, bool ended, Summary& summary) const;

 private:
  /// A log with its last entry.
  struct Log {
    LogGaps gaps;
    PeerId writer;
    Round round = 0;
    std::int64_t unix_nanos = 0;
  };

  bool goes_on_elsewhere(const Log& log) const;
  void tell_early_ends(const Journal& journal, bool ended, Summary& summary) const;

  std::map<std::size_t, Log> logs_;
  UnloggedRounds rounds_;
};

/// The peer came back on another machine, where it began another log.
bool Absence::goes_on_elsewhere(const Log& log) const {
  return std::ranges::any_of(logs_, [&](const auto& other) {
    return other.second.writer == log.writer && other.second.unix_nanos > log.unix_nanos;
  });
}

/// Logs that end without a stop or a loss of their writer, while those of other peers go on; ended: or where
/// no writer goes on.
void Absence::tell_early_ends(const Journal& journal, bool ended, Summary& summary) const {
  const Round last = summary.board.round;
  std::int64_t end_unix_nanos = 0;
  for (const auto& [number, log] : logs_) end_unix_nanos = std::max(end_unix_nanos, log.unix_nanos);
  const auto& peers = journal.peers().all();
  for (const auto& [number, log] : logs_) {
    const auto peer = peers.find(log.writer);
    if (peer == peers.end()) continue;
    const bool others_go_on = log.round + 1 < last;
    const Standing& standing = peer->second.standing;
    if (!others_go_on && !ended) continue;
    if (!Peers::stayed(standing, last) || standing.stopped_s || goes_on_elsewhere(log)) continue;
    std::string why = fmt::format("its log ends in round {} without a stop", log.round);
    if (others_go_on) why += fmt::format(", other logs go on to round {}", last);
    summary.missing.push_back({.peer = peer->first,
                               .events = {},
                               .from_unix_nanos = log.unix_nanos,
                               .to_unix_nanos = others_go_on ? std::optional(end_unix_nanos) : std::nullopt,
                               .why = std::move(why)});
  }
}

void Absence::tell(const Journal& journal, bool ended, Summary& summary) const {
  for (const auto& [number, log] : logs_)
    for (const MissingEvents& gap : log.gaps.found()) summary.missing.push_back(gap);
  tell_early_ends(journal, ended, summary);
  for (MissingEvents& gap : rounds_.found()) summary.missing.push_back(std::move(gap));
}

/// Nothing where the board does not have the first round any more, or nothing was committed.
std::optional<double> speed_from_beginning(const Board& board) {
  const auto committed = std::find_if(board.rounds.rbegin(), board.rounds.rend(),
                                      [](const BoardRound& round) { return round.committed_s.has_value(); });
  if (committed == board.rounds.rend() || board.rounds.front().round != 1) return std::nullopt;
  const double seconds = *committed->committed_s - board.rounds.front().begun_s;
  return seconds > 0 ? std::optional(static_cast<double>(board.samples) / seconds) : std::nullopt;
}

void sum_up_rounds(Summary& summary) {
  const std::vector<BoardRound>& rounds = summary.board.rounds;
  std::uint64_t before = 0, samples = 0, carried = 0;
  Round last = 0;
  summary.rounds = 0;
  summary.samples_per_s = 0;
  for (const BoardRound& round : rounds) {
    if (round.loss && !summary.board.loss) summary.loss = round.loss;
    if (!round.committed_s) continue;
    // Logs that begin in the middle of a run do not say what was there before, only what their peers added.
    const bool known = round.round == 1 || before > 0;
    samples += known && round.samples_total > before ? round.samples_total - before : round.samples;
    carried += round.carried;
    before = round.samples_total;
    if (summary.rounds > 0) summary.unlogged_rounds += round.round - last - 1;
    last = round.round;
    ++summary.rounds;
    const double seconds = *round.committed_s - rounds.front().begun_s;
    if (seconds > 0) summary.samples_per_s = static_cast<double>(samples) / seconds;
  }
  summary.samples = samples;
  if (summary.rounds > 0) summary.samples_carried = carried;
}

void price(const std::vector<BoardPeer>& peers, DroppedRounds& dropped) {
  for (const BoardPeer& peer : peers) {
    const auto spent = dropped.spent.find(peer.peer);
    if (peer.usd_per_h && spent != dropped.spent.end())
      dropped.usd = dropped.usd.value_or(0) + to_seconds(spent->second) / 3600 * *peer.usd_per_h;
  }
}

/// Means of the rounds of which both times are known.
void average_phases(Summary& summary) {
  double calc_s = 0, comm_s = 0, count = 0;
  for (const BoardRound& round : summary.board.rounds) {
    if (!round.committed_s || !round.calc_s || !round.comm_s) continue;
    calc_s += *round.calc_s;
    comm_s += *round.comm_s;
    count += 1;
  }
  if (count == 0) return;
  summary.calc_s = calc_s / count;
  summary.comm_s = comm_s / count;
}

/// Nothing is known of a sum with an unknown part.
void add_to(std::optional<double>& sum, double more, bool is_known) {
  if (!is_known)
    sum.reset();
  else if (sum)
    *sum += more;
}

}  // namespace

std::optional<double> Summary::granularity() const {
  return comm_s.value_or(0) > 0 ? std::optional(*calc_s / *comm_s) : std::nullopt;
}

std::optional<double> Summary::usd_again() const {
  const std::optional<double> usd = board.money.usd();
  if (!usd || !samples_again || samples == 0) return std::nullopt;
  const auto again = static_cast<double>(*samples_again);
  return *usd * again / (static_cast<double>(samples) + again);
}

std::vector<StoreUsed> stores_of(const std::vector<BoardLink>& links) {
  std::map<std::string, StoreUsed> stores;
  for (const BoardLink& link : links) {
    if (link.store.empty()) continue;
    StoreUsed& store = stores[link.store];
    store.store = link.store;
    StoreTraffic& traffic = link.reads_store() ? store.read : store.written;
    traffic.bytes += link.bytes;
    traffic.requests += link.requests;
    add_to(traffic.usd, link.usd, link.usd_per_gb.has_value());
    add_to(traffic.requests_usd, link.requests_usd.value_or(0), link.requests_usd.has_value());
  }
  std::vector<StoreUsed> used;
  for (auto& [name, store] : stores) used.push_back(std::move(store));
  return used;
}

Summary summary_of(Board board) {
  Summary summary;
  summary.rounds = board.round;
  summary.samples = board.samples;
  summary.samples_per_s = speed_from_beginning(board);
  summary.loss = board.loss;
  summary.identical = board.identical.value_or(false);
  for (const Interruption& one : board.interruptions) {
    if (one.kind == Interruption::Kind::lost)
      summary.lost.push_back({one.peer, one.round, {}, {}, one.detail, {}});
    if (one.kind == Interruption::Kind::joined) summary.joined.push_back({one.peer, one.round, {}});
  }
  for (const BoardPeer& peer : board.peers) {
    if (!peer.notice) continue;
    const auto& deadline_s = peer.notice->deadline_s;
    summary.notices.push_back(
        {.peer = peer.peer,
         .round = peer.round,
         .source = peer.notice->source,
         .kind = peer.notice->kind,
         .deadline_s = deadline_s ? std::optional(*deadline_s - peer.notice->told_s) : std::nullopt,
         .used_s = {}});
  }
  summary.board = std::move(board);
  average_phases(summary);
  return summary;
}

Result<Summary> summarize(const LogSource& logs, JournalOptions options, Writers writers) {
  TW_TRY(const auto held, HeldHistory::of(logs));
  options.whole = true;
  Journal journal(std::move(options));
  Aftermath aftermath;
  Absence absence;
  std::size_t next = 0;
  TW_TRY(logs.each(kAllPhases, [&](const LogEntry& entry, std::size_t log) {
    const bool dropped = held.drops(next++), from_lost = journal.peers().is_lost(entry.writer);
    const std::optional<Interruption> came = journal.take(entry, dropped);
    if (!dropped) aftermath.take(entry, came, journal, from_lost);
    absence.take(entry, log, dropped);
  }));
  Summary summary = summary_of(journal.board());
  aftermath.tell(summary);
  sum_up_rounds(summary);
  summary.difference = journal.rounds().difference();
  if (!summary.difference.empty()) summary.identical = false;
  summary.microbatches_again = journal.ledger().again();
  if (*summary.microbatches_again == 0 || journal.ledger().microbatch() > 0)
    summary.samples_again = summary.board.ledger.again;
  summary.dropped = held.dropped_rounds();
  for (DroppedRounds& dropped : summary.dropped) price(summary.board.peers, dropped);
  writers.ended = writers.ended || (writers.now_s > 0 && journal.board(writers.now_s).dead_since_s);
  absence.tell(journal, writers.ended, summary);
  return summary;
}

Summary summarize(const std::vector<std::vector<LogEntry>>& logs, JournalOptions options, Writers writers) {
  return summarize(HeldLogs(logs), std::move(options), writers).value();
}

}  // namespace tw::monitor
