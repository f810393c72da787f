// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "monitor/board/board.h"

namespace tw::monitor {

/// The stretches of one peer's time over its last rounds.
class Lane {
 public:
  /// rounds: so many are kept at least.
  explicit Lane(PeerId peer, std::size_t rounds = Board::kMostLaneRounds)
      : most_spans_(kMostSpansOfRound * rounds), open_{.peer = peer} {}

  /// Begins this state. Times do not go back: an earlier one counts as the last one.
  void enter(PeerState state, Round round, double at_s);

  /// The present state began at this time, as is known only now: the one before lasted until then.
  void began_at(double at_s);

  /// The reason of the wait in the open span.
  void wait(const std::string& why) { open_.why = why; }

  PeerState state() const { return open_.state; }

  Round round() const { return open_.round; }

  double since_s() const { return open_.from_s; }

  bool is_empty() const { return !begun_; }

  /// The spans of rounds from `first` on; the open one ends now.
  void append_to(std::vector<BoardSpan>& spans, Round first, double now_s) const;

 private:
  static constexpr std::size_t kMostSpansOfRound = 16;

  std::size_t most_spans_;
  std::deque<BoardSpan> past_;
  BoardSpan open_;
  bool begun_ = false;
};

}  // namespace tw::monitor
