// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "monitor/board/board.h"
#include "monitor/fold/seen.h"
#include "wire/status.h"

namespace tw::monitor {

/// What programs measured of the parameters of the run. The newest counts of each peer, round and name.
class Evaluations {
 public:
  /// most: the oldest beyond it are forgotten.
  explicit Evaluations(std::size_t most = Board::kMostEvaluations) : most_(most) {}

  void take(const Seen& seen);
  void take(const wire::Status& status);

  /// Rounds after this one are repeated.
  void rewind(Round to);

  /// By round, name, peer.
  std::vector<BoardEvaluation> board() const;

  /// The newest of this peer, at most kMostTold, oldest first.
  std::vector<BoardEvaluation> told_by(PeerId peer) const;

  static constexpr std::size_t kMostTold = 16;

 private:
  using Key = std::tuple<Round, std::string, PeerId>;

  void keep(BoardEvaluation evaluation);

  std::size_t most_;
  std::map<Key, BoardEvaluation> all_;
};

}  // namespace tw::monitor
