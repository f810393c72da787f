// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "monitor/board/board.h"

namespace tw::monitor {

/// What a run would do with other peers, bandwidth and target batch, from what it measured of itself over its
/// last rounds: the answers for every position of the sliders of its page. Averaging is in proportion to the
/// bytes that a peer sends, with the overheads of market/averaging_overheads.h. Where rounds overlap, one
/// takes as long as the longer of computing and averaging.
struct WhatIf {
  struct AsItIs {
    std::uint64_t peers = 0, tbs = 0;

    static void fields(auto& self, auto&& field) {
      field("peers", self.peers);
      field("tbs", self.tbs);
    }
  };

  /// How far the law was from what the run then did: the first half of its last rounds predicts the speed of
  /// the second.
  struct Judged {
    double predicted = 0, measured = 0;  ///< samples/s
    std::uint64_t rounds = 0;

    static void fields(auto& self, auto&& field) {
      field("predicted", self.predicted);
      field("measured", self.measured);
      field("rounds", self.rounds);
    }
  };

  std::vector<std::uint64_t> peers;
  std::vector<double> bandwidth;   ///< times that of the run
  std::vector<std::uint64_t> tbs;  ///< target batch
  /// By peers, bandwidth and batch: samples/s, seconds, seconds of averaging, granularity.
  std::vector<std::vector<std::vector<std::vector<double>>>> rounds;
  AsItIs as_it_is;
  std::optional<Judged> judged;  ///< nothing: too few rounds with as many peers

  static void fields(auto& self, auto&& field) {
    field("peers", self.peers);
    field("bandwidth", self.bandwidth);
    field("tbs", self.tbs);
    field("rounds", self.rounds);
    field("as_it_is", self.as_it_is);
    field("judged", self.judged);
  }
};

/// Nothing: fewer than two rounds with as many peers as the newest one.
std::optional<WhatIf> what_if(const Board& board);

}  // namespace tw::monitor
