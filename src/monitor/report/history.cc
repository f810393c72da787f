// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/history.h"

#include <algorithm>

#include "base/median.h"
#include "monitor/report/report.h"

namespace tw::monitor {

using world::Phase;

namespace {

/// Wall time minus monotonic time; the median, because the wall clock may be set while a run goes on.
std::int64_t clock_offset_ns(const std::vector<LogEntry>& log) {
  const auto offset = [](const LogEntry& entry) {
    return entry.unix_nanos - entry.event.at.time_since_epoch().count();
  };
  const std::int64_t first = offset(log.front());
  std::vector<double> later;  // nanoseconds since 1970 are more than a double holds
  for (const LogEntry& entry : log) later.push_back(static_cast<double>(offset(entry) - first));
  return first + static_cast<std::int64_t>(median(std::move(later)));
}

/// The first report of a loss need not have the time of silence.
void complete_loss(RunHistory& history, const world::Event& event) {
  const auto silent_s = number_in(event, "silent_s");
  for (LossFacts& loss : history.losses) {
    if (loss.peer != *event.peer || loss.round != event.round || loss.detected_s || !silent_s) continue;
    loss.begun = std::min(loss.detected, event.at - from_seconds(*silent_s));
    loss.detected_s = to_seconds(loss.detected - loss.begun);
  }
}

void note_loss(RunHistory& history, const LogEntry& entry) {
  const world::Event& event = entry.event;
  if (!event.peer || history.peers[entry.writer].lost_round)
    return;  // what the lost think of the others is no news
  PeerFacts& victim = history.peers[*event.peer];
  if (victim.left) return;
  if (victim.lost_round) return complete_loss(history, event);
  victim.lost_round = event.round;
  victim.returned.reset();
  history.rounds[event.round].disturbed = true;

  LossFacts loss{.peer = *event.peer,
                 .round = event.round,
                 .begun = event.at,
                 .detected = event.at,
                 .detected_s = {},
                 .why = event.why};
  if (victim.killed) {
    loss.begun = *victim.killed;
    loss.detected_s = to_seconds(event.at - *victim.killed);
  } else if (const auto silent_s = number_in(event, "silent_s")) {
    loss.begun = event.at - from_seconds(*silent_s);
    loss.detected_s = silent_s;
  }
  history.losses.push_back(std::move(loss));
}

/// A run that goes on from a checkpoint does the rounds after it once more: the first time does not count.
void rewind(RunHistory& history, Round to) {
  history.rounds.erase(history.rounds.upper_bound(to), history.rounds.end());
  for (auto& [id, peer] : history.peers) {
    peer.contributed.erase(peer.contributed.upper_bound(to), peer.contributed.end());
    if (!peer.resumed) peer.superseded = true;
  }
}

void note_accumulate(RunHistory& history, const LogEntry& entry) {
  const world::Event& event = entry.event;
  PeerFacts& peer = history.peers[entry.writer];
  const bool goes_on = peer.resumed && *peer.resumed + 1 == event.round;
  if (goes_on) rewind(history, *peer.resumed);
  peer.resumed.reset();

  const bool returns = peer.lost_round && event.round > *peer.lost_round;
  if (!history.first_round) history.first_round = event.round;
  const bool comes = !peer.first_round && *history.first_round < event.round && !goes_on;
  if (returns || comes) {
    history.arrivals.push_back({.peer = entry.writer,
                                .round = event.round,
                                .since = returns ? peer.returned : peer.launched,
                                .contributed = {}});
    history.rounds[event.round].disturbed = true;
  }
  if (returns) peer.lost_round.reset();
  if (!peer.first_round) peer.first_round = event.round;

  RoundFacts& round = history.rounds[event.round];
  if (!round.begun) round.begun = event.at;
}

void note_commit(RunHistory& history, const LogEntry& entry) {
  const world::Event& event = entry.event;
  RoundFacts& round = history.rounds[event.round];
  if (!round.committed) {
    round.committed = event.at;
    if (!round.led) round.leader = entry.writer;
  }
  const auto most = [&](std::uint64_t& known, std::string_view name) {
    known = std::max(known, static_cast<std::uint64_t>(number_in(event, name).value_or(0)));
  };
  most(round.samples_total, "samples_total");
  most(round.carried, "carried");
  if (const auto comm_s = number_in(event, "comm_s")) round.comm_s[entry.writer] = *comm_s;
  if (const auto calc_s = number_in(event, "calc_s")) round.calc_s[entry.writer] = *calc_s;

  const auto samples = static_cast<std::uint64_t>(number_in(event, "samples").value_or(0));
  round.own_samples += samples;
  if (samples == 0) return;
  if (const auto loss = number_in(event, "loss")) {
    round.loss_sum += *loss * static_cast<double>(samples);
    round.loss_samples += samples;
  }
  PeerFacts& peer = history.peers[entry.writer];
  peer.contributed[event.round] = samples;
  for (ArrivalFacts& arrival : history.arrivals)
    if (arrival.peer == entry.writer && !arrival.contributed) arrival.contributed = event.at;
}

void note_parameters(RunHistory& history, const LogEntry& entry) {
  if (entry.event.digest.empty()) return;
  history.rounds[entry.event.round].digests[entry.event.text("record")].emplace(entry.writer,
                                                                                entry.event.digest);
  PeerFacts& peer = history.peers[entry.writer];
  peer.digest = entry.event.digest;
  peer.digest_round = entry.event.round;
}

void note_leave(RunHistory& history, const LogEntry& entry) {
  const PeerId who = entry.event.peer.value_or(entry.writer);
  PeerFacts& peer = history.peers[who];
  if (peer.left) return;
  peer.left = true;
  history.departures.emplace_back(who, entry.event.round);
  history.rounds[entry.event.round].disturbed = true;
}

void note_stop(RunHistory& history, const LogEntry& entry) {
  const world::Event& event = entry.event;
  PeerFacts& peer = history.peers[entry.writer];
  peer.stopped = true;
  for (NoticeFacts& notice : history.notices)
    if (notice.peer == entry.writer && !notice.stopped) notice.stopped = event.at;
  if (const auto bytes = number_in(event, "bytes_sent")) peer.bytes_sent = static_cast<std::uint64_t>(*bytes);
  if (const auto bytes = number_in(event, "bytes_received"))
    peer.bytes_received = static_cast<std::uint64_t>(*bytes);
}

void note_start(RunHistory& history, const LogEntry& entry) {
  PeerFacts& peer = history.peers[entry.writer];
  if (!peer.launched) peer.launched = entry.event.at;
  if (const auto price = number_in(entry.event, "usd_per_h")) peer.usd_per_h = price;
  if (number_in(entry.event, "insecure")) history.insecure = true;
  const double samples = number_in(entry.event, "microbatch").value_or(0);
  if (samples >= 1 && samples < 0x1p53) history.microbatch = static_cast<std::uint64_t>(samples);
}

/// Two leaders of one round may both say it of a peer: it counts once. Without a peer it is about work that
/// is left to the next round, which nobody had done.
void note_reissue(RunHistory& history, const LogEntry& entry) {
  const double microbatches = number_in(entry.event, "microbatches").value_or(0);
  const bool counts = entry.event.peer && microbatches >= 1 && microbatches < 0x1p53;
  if (!counts || history.peers[entry.writer].lost_round) return;
  std::uint64_t& most = history.given_out_again[{entry.event.round, *entry.event.peer}];
  most = std::max(most, static_cast<std::uint64_t>(microbatches));
}

/// Notices and departures of peers.
void note_going(RunHistory& history, const LogEntry& entry) {
  if (entry.event.phase == Phase::lost) note_loss(history, entry);
  if (entry.event.phase == Phase::leave) note_leave(history, entry);
  if (entry.event.phase == Phase::reissue) note_reissue(history, entry);
  if (entry.event.phase == Phase::stop) note_stop(history, entry);
  if (entry.event.phase == Phase::notice)
    history.notices.push_back({.peer = entry.writer, .told = entry.event, .stopped = {}});
  if (entry.event.phase == Phase::handover && entry.event.peer)
    history.handovers.push_back({.peer = entry.writer, .told = entry.event});
}

void note_skip(RunHistory& history, const world::Event& event) {
  const double sample = number_in(event, "sample").value_or(-1);
  if (sample >= 0 && sample < 0x1p53) history.skipped.insert(static_cast<std::uint64_t>(sample));
}

void note_driver(RunHistory& history, const world::Event& event) {
  if (!event.peer) return;
  PeerFacts& peer = history.peers[*event.peer];
  if (event.phase == Phase::start) peer.launched = event.at;
  if (event.phase != Phase::kill) return;
  peer.killed = event.at;
  peer.killed_round = event.round;
}

void note(RunHistory& history, const LogEntry& entry) {
  const world::Event& event = entry.event;
  if (entry.writer == PeerId{}) return note_driver(history, event);
  PeerFacts& peer = history.peers[entry.writer];
  if (peer.lost_round && !peer.returned) peer.returned = event.at;
  RoundFacts* round = nullptr;
  switch (event.phase) {
    case Phase::start:
      note_start(history, entry);
      break;
    case Phase::accumulate:
      note_accumulate(history, entry);
      break;
    case Phase::lead:
      round = &history.rounds[event.round];
      round->leader = entry.writer;
      round->led = true;
      break;
    case Phase::call:
      if (const auto calc_s = number_in(event, "calc_s"))
        history.rounds[event.round].calc_s.emplace(entry.writer, *calc_s);
      break;
    case Phase::commit:
      note_commit(history, entry);
      break;
    case Phase::apply:
      note_parameters(history, entry);
      break;
    case Phase::restore:
      note_parameters(history, entry);
      peer.resumed = event.cause == world::Cause::checkpoint ? std::optional(event.round) : std::nullopt;
      break;
    case Phase::join:
      history.rounds[event.round].disturbed = true;
      break;
    case Phase::skip:
      note_skip(history, event);
      break;
    default:
      note_going(history, entry);
      break;
  }
}

/// Peers close their links when a run ends; a peer that looks a moment longer may take that for losses.
void drop_losses_after_the_end(RunHistory& history) {
  Round last = 0;
  for (const auto& [number, round] : history.rounds)
    if (round.committed) last = number;
  std::erase_if(history.losses, [&](const LossFacts& loss) {
    PeerFacts& peer = history.peers[loss.peer];
    const bool after_the_end = peer.stopped && !peer.killed && loss.round > last;
    if (after_the_end) peer.lost_round.reset();
    return after_the_end;
  });
}

void add_unnoticed_kills(RunHistory& history) {
  for (auto& [id, peer] : history.peers) {
    if (!peer.killed || peer.lost_round) continue;
    history.losses.push_back({.peer = id,
                              .round = peer.killed_round,
                              .begun = *peer.killed,
                              .detected = kNever,
                              .detected_s = {},
                              .why = "killed"});
    peer.lost_round = peer.killed_round;
  }
}

}  // namespace

std::vector<LogEntry> merge(const std::vector<std::vector<LogEntry>>& logs) {
  std::vector<LogEntry> all;
  std::optional<std::int64_t> first_offset_ns;
  for (const std::vector<LogEntry>& log : logs) {
    if (log.empty()) continue;
    const std::int64_t offset_ns = clock_offset_ns(log);
    if (!first_offset_ns) first_offset_ns = offset_ns;
    const Duration apart(offset_ns - *first_offset_ns);
    const bool same_clock = std::chrono::abs(apart) < std::chrono::seconds(1);
    for (LogEntry entry : log) {
      if (!same_clock) entry.event.at += apart;
      all.push_back(std::move(entry));
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const LogEntry& a, const LogEntry& b) { return a.event.at < b.event.at; });
  return all;
}

RunHistory gather_history(const std::vector<LogEntry>& entries, const std::vector<bool>& dropped) {
  RunHistory history;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!dropped.at(i)) note(history, entries[i]);
  drop_losses_after_the_end(history);
  add_unnoticed_kills(history);
  return history;
}

}  // namespace tw::monitor
