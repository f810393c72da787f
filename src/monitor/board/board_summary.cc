// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board_summary.h"

#include <algorithm>

namespace tw::monitor {
namespace {

std::optional<double> mean_of(const std::vector<BoardRound>& rounds,
                              std::optional<double> BoardRound::*seconds) {
  double sum = 0;
  int count = 0;
  for (const BoardRound& round : rounds) {
    if (!(round.*seconds)) continue;
    sum += *(round.*seconds);
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

PeerSummary summary_of_peer(const BoardPeer& peer) {
  return {.id = peer.peer,
          .rounds = peer.rounds,
          .samples = peer.samples,
          .digest = peer.digest,
          .bytes_sent = peer.usage.bytes_sent,
          .bytes_received = peer.usage.bytes_received,
          .hours = peer.usage.hours,
          .usd = peer.usd_per_h ? std::optional(*peer.usd_per_h * peer.usage.hours) : std::nullopt};
}

void take_interruption(Summary& summary, const Interruption& came) {
  switch (came.kind) {
    case Interruption::Kind::joined:
      summary.joined.push_back({.peer = came.peer, .round = came.round, .seconds = {}});
      break;
    case Interruption::Kind::left:
      summary.left.push_back({.peer = came.peer, .round = came.round});
      break;
    case Interruption::Kind::lost:
      summary.lost.push_back({.peer = came.peer,
                              .round = came.round,
                              .detected_s = {},
                              .extra_s = {},
                              .why = came.detail,
                              .microbatches_again = {}});
      break;
    case Interruption::Kind::notice:
    case Interruption::Kind::handed_over:
      break;
  }
}

void take_notices(Summary& summary, const std::vector<BoardPeer>& peers) {
  for (const BoardPeer& peer : peers) {
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
}

}  // namespace

Summary summary_of(const Board& board) {
  Summary summary;
  summary.rounds = board.round;
  summary.samples = board.samples;
  summary.samples_skipped = board.ledger.skipped;
  summary.samples_per_s = board.speed.samples_per_s;
  summary.loss = board.loss;
  summary.calc_s = mean_of(board.rounds, &BoardRound::calc_s);
  summary.comm_s = mean_of(board.rounds, &BoardRound::comm_s);
  summary.granularity = board.speed.granularity;
  summary.identical = board.identical.value_or(false);
  for (const BoardPeer& peer : board.peers) summary.peers.push_back(summary_of_peer(peer));
  for (const Interruption& came : board.interruptions) take_interruption(summary, came);
  take_notices(summary, board.peers);
  summary.leavings.samples_handed_over = board.ledger.handed_over;
  summary.leavings.samples_again = board.ledger.again;
  summary.cost = {.machine_hours = board.money.machine_hours,
                  .priced_hours = board.money.priced_hours,
                  .usd = board.money.usd(),
                  .egress_usd = board.money.egress_usd,
                  .requests_usd = board.money.requests_usd,
                  .usd_again = {}};
  return summary;
}

}  // namespace tw::monitor
