// SPDX-License-Identifier: Apache-2.0
#include "monitor/fold/journal.h"

#include <algorithm>

#include "base/median.h"
#include "base/result.h"
#include "monitor/fold/money.h"

namespace tw::monitor {
namespace {

/// Share of the peers' time over the spans that they computed for samples that count.
std::optional<double> goodput_of(const std::vector<BoardSpan>& spans, const std::vector<BoardRound>& rounds) {
  double useful_s = 0, all_s = 0;
  for (const BoardSpan& span : spans) {
    if (span.state == PeerState::left || span.state == PeerState::lost) continue;
    const auto round = std::ranges::lower_bound(rounds, span.round, {}, &BoardRound::round);
    if (round == rounds.end() || round->round != span.round || !round->committed_s) continue;
    const double seconds = span.to_s - span.from_s;
    all_s += seconds;
    const bool counts = std::ranges::binary_search(round->contributors, span.peer);
    if (span.state == PeerState::computing && counts) useful_s += seconds;
  }
  return all_s > 0 ? std::optional(useful_s / all_s) : std::nullopt;
}

double usual_round_s(const std::vector<BoardRound>& rounds) {
  std::vector<double> took_s;
  for (std::size_t i = 1; i < rounds.size(); ++i)
    if (rounds[i].committed_s && rounds[i - 1].committed_s)
      took_s.push_back(*rounds[i].committed_s - *rounds[i - 1].committed_s);
  return took_s.empty() ? 0 : median(std::move(took_s));
}

bool has_gone(const BoardPeer& peer) {
  return peer.state == PeerState::left || peer.state == PeerState::lost;
}

/// Mean over the time of all rounds. begun_s: when the first one began.
std::optional<double> machines_usd_per_h(const Board& board, double begun_s) {
  if (!board.money.machines_usd || board.rounds.empty()) return std::nullopt;
  const double hours = (board.now_s - begun_s) / 3600;
  return hours > 0 ? std::optional(*board.money.machines_usd / hours) : std::nullopt;
}

}  // namespace

Journal::Journal(JournalOptions options)
    : options_(std::move(options)),
      peers_(options_.lane_rounds),
      rounds_(options_.whole ? ~std::size_t{0} : Board::kMostRounds),
      links_(options_.egress),
      evaluations_(options_.whole ? ~std::size_t{0} : Board::kMostEvaluations) {}

void Journal::take_news(const Peers::News& news) {
  if (news.interruption) interruptions_.push_back(*news.interruption);
  if (!options_.whole && interruptions_.size() > Board::kMostInterruptions) interruptions_.pop_front();
  if (news.rewound) rounds_.rewind(*news.rewound);
  if (news.rewound) delays_.rewind(*news.rewound);
  if (news.rewound) evaluations_.rewind(*news.rewound);
}

void Journal::take_last_round(const event::Count& told) {
  if (const std::uint64_t rounds = told.value_or(0); rounds > 0) last_round_ = rounds;
}

void Journal::take_start(const event::Start& start) {
  if (!start.digest.empty()) run_ = start.digest;
  take_last_round(start.last_round);
  budget_usd_ = start.budget_usd;
  budget_drains_ = start.budget_drains;
}

std::optional<Interruption> Journal::take(const LogEntry& entry, bool dropped) {
  const Seen seen{entry, clocks_.seconds(entry)};
  newest_s_ = std::max(newest_s_, seen.at_s);
  if (dropped) {
    peers_.take_dropped(seen);
    return std::nullopt;
  }
  const bool from_lost = peers_.is_lost(entry.writer);
  const Peers::News news = peers_.take(seen);
  take_news(news);
  if (entry.writer == PeerId{}) return news.interruption;
  if (const auto* start = entry.event.as<event::Start>()) take_start(*start);
  if (const auto* restored = entry.event.as<event::Restore>()) take_last_round(restored->last_round);
  rounds_.take(seen, from_lost);
  ledger_.take(seen, from_lost);
  own_ledgers_[entry.writer].take(seen, from_lost);
  links_.take(seen);
  delays_.take(seen);
  evaluations_.take(seen);
  return news.interruption;
}

void Journal::take(PeerId from, const wire::Status& told, double at_s) {
  const wire::Status status = wire::moved(told, at_s - told.now_s);
  newest_s_ = std::max(newest_s_, at_s);
  if (!gone_before_) gone_before_ = status.gone;
  take_news(peers_.take(from, status, at_s));
  rounds_.take(from, status);
  told_ledgers_[from].take(status.ledger);
  links_.take(from, status, at_s);
  evaluations_.take(status);
}

SampleLedger Journal::whole_ledger() const {
  SampleLedger sum = ledger_.word();
  if (gone_before_) add(gone_before_->ledger, sum);
  for (const auto& [peer, told] : told_ledgers_) add(told.word(), sum);
  return sum;
}

std::vector<Interruption> Journal::interruptions() const {
  std::vector<Interruption> told;
  for (const Interruption& one : interruptions_)
    if (!peers_.ended_itself(one, rounds_.last())) told.push_back(one);
  return told;
}

BoardPeer Journal::priced(BoardPeer peer) const {
  if (options_.keeps_to_usd_per_h) peer.usd_per_h.reset();
  if (peer.usd_per_h) return peer;
  const auto price = options_.usd_per_h.find(peer.peer);
  if (price != options_.usd_per_h.end()) peer.usd_per_h = price->second;
  return peer;
}

/// After a complete run a program may go on for a while, to evaluate its model.
bool Journal::lost_its_end(const Board& board, const BoardPeer& peer) const {
  constexpr double kPatience_s = 600;
  return options_.may_lack_ends && board.complete && !has_gone(peer) &&
         board.now_s - peer.heard_s > kPatience_s;
}

void Journal::add_peers(Board& board) const {
  const Round newest = rounds_.last() + 1;
  const Round first = newest > options_.lane_rounds ? newest - options_.lane_rounds + 1 : 0;
  for (const auto& [id, track] : peers_.all()) {
    BoardPeer& peer = board.peers.emplace_back(priced(track.board(board.now_s)));
    const bool is_cut = lost_its_end(board, peer);
    track.lane.append_to(board.spans, first, is_cut ? peer.heard_s : board.now_s);
    if (!is_cut) continue;
    peer.state = PeerState::lost;
    peer.since_s = peer.heard_s;
    peer.samples_per_s = 0;
    peer.wait.reset();
    peer.ended = "its log ends without a stop";
  }
}

/// How long all peers may be silent before the run counts as dead.
double Journal::patience_s(const Board& board) const {
  constexpr double kLeastS = 60, kRounds = 3, kUnknownS = 600;
  const double usual_s = usual_round_s(board.rounds);
  double patience_s = usual_s > 0 ? kLeastS + kRounds * usual_s : kUnknownS;
  for (const auto& [id, track] : peers_.all()) {
    const std::optional<BoardWait>& wait = track.last_wait();
    if (!wait) continue;
    // It is told again after half of what it lasted (train/session/waits.h): that is doubled here.
    const double lasted_s = track.board(board.now_s).heard_s - wait->since_s;
    patience_s = std::max({patience_s, kUnknownS, lasted_s});
  }
  return patience_s;
}

/// Board::dead_since_s.
std::optional<double> Journal::dead_since(const Board& board) const {
  if (board.is_over() || board.peers.empty()) return std::nullopt;
  double last_gone_s = 0, last_heard_s = 0;
  for (const BoardPeer& peer : board.peers) {
    if (has_gone(peer)) last_gone_s = std::max(last_gone_s, peer.since_s);
    last_heard_s = std::max(last_heard_s, peer.heard_s);
  }
  if (std::ranges::all_of(board.peers, has_gone)) return last_gone_s;
  const bool is_silent = board.now_s - last_heard_s > patience_s(board);
  return is_silent ? std::optional(last_heard_s) : std::nullopt;
}

/// The leader ends a run by what it knows of the cost: others may know a second less.
void Journal::judge_end(Board& board) const {
  constexpr double kSpentShare = 0.95;
  const bool all_left =
      std::ranges::all_of(board.peers, [](const BoardPeer& peer) { return peer.state == PeerState::left; });
  if (!board.complete && !board.last_round && !board.peers.empty() && all_left)
    board.ended = "all peers have left";
  if (!board.complete || !board.last_round || board.round >= *board.last_round) return;
  const auto usd = board.money.usd(), budget = board.money.budget_usd;
  const bool spent = budget_drains_ && usd && budget && *usd >= kSpentShare * *budget;
  board.complete = false;
  board.ended = spent ? "its budget is spent" : "a program ended it";
}

Board Journal::board(double now_s) const {
  Board board;
  board.run = run_;
  board.now_s = std::max(now_s, newest_s_);
  board.round = rounds_.last();
  board.last_round = last_round_;
  board.samples = rounds_.samples();
  board.loss = rounds_.loss();
  board.identical = rounds_.identical();
  board.complete = rounds_.complete();
  board.rounds = rounds_.board();
  add_peers(board);
  board.speed = rounds_.speed();
  board.speed.goodput = goodput_of(board.spans, board.rounds);
  board.interruptions = interruptions();
  board.evaluations = evaluations_.board();
  board.ledger = ledger_of(whole_ledger(), board.samples);
  board.links = links_.board(board.now_s, board.peers);
  board.money = money_of(board, gone_before_.value_or(wire::GonePeers{}),
                         options_.budget_usd ? options_.budget_usd : budget_usd_);
  judge_end(board);
  if (const auto since_s = dead_since(board)) board.is_dead_since(*since_s);
  const bool trains_on = !board.is_over() && !board.dead_since_s;
  const auto is_apart = [&](const auto& track) { return track.second.is_apart(board.now_s); };
  if (trains_on && board.identical.value_or(false) && std::ranges::any_of(peers_.all(), is_apart))
    board.identical.reset();
  board.delays = delays_.board(machines_usd_per_h(board, rounds_.begun_s()));
  board.own_delays = !told_ledgers_.empty();
  return board;
}

SampleLedger Journal::ledger_of_peer(PeerId peer) const {
  SampleLedger sum;
  if (const auto own = own_ledgers_.find(peer); own != own_ledgers_.end()) add(own->second.word(), sum);
  if (const auto told = told_ledgers_.find(peer); told != told_ledgers_.end()) add(told->second.word(), sum);
  return sum;
}

wire::GonePeers Journal::gone_beside(PeerId self) const {
  wire::GonePeers sum = gone_before_.value_or(wire::GonePeers{});
  for (const auto& [id, track] : peers_.all()) {
    if (id == self || !track.is_gone()) continue;
    const BoardPeer peer = priced(track.board(newest_s_));
    sum.hours += peer.usage.hours;
    add(ledger_of_peer(id), sum.ledger);
    const Links::Usd usd = links_.usd_of(id);
    sum.egress_usd += usd.bytes;
    sum.requests_usd += usd.requests;
    if (!peer.usd_per_h) continue;
    sum.priced_hours += peer.usage.hours;
    sum.machines_usd += peer.usage.hours * *peer.usd_per_h;
  }
  return sum;
}

wire::Status Journal::status(PeerId self, double now_s) const {
  wire::Status status;
  status.now_s = now_s;
  const auto own = peers_.all().find(self);
  if (own == peers_.all().end()) return status;
  status.peer = priced(own->second.board(now_s));
  status.rounds = own->second.stages.rounds(now_s);
  status.links = links_.links_of(self);
  status.ledger = ledger_of_peer(self);
  status.gone = gone_beside(self);
  status.evaluations = evaluations_.told_by(self);
  wire::cut(status);
  return status;
}

Result<Journal> journal_of(const LogSource& logs, const HeldHistory& history, JournalOptions options) {
  Journal journal(std::move(options));
  std::size_t next = 0;
  TW_TRY(logs.each(kAllPhases,
                   [&](const LogEntry& entry, std::size_t) { journal.take(entry, history.drops(next++)); }));
  return journal;
}

Journal journal_of(const std::vector<std::vector<LogEntry>>& logs, JournalOptions options) {
  const HeldLogs held(logs);
  return journal_of(held, HeldHistory::of(held).value(), std::move(options)).value();
}

}  // namespace tw::monitor
