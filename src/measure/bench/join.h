// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "measure/bench/reduce.h"

namespace tw::measure {

struct JoinOptions {
  std::uint64_t bytes = 0;  ///< of the state: parameters and both moments of AdamW
  std::uint64_t peers = 2;  ///< that have it
  Duration work{};          ///< of a microbatch; a round has four for each peer
  Round turns = 1;
};

/// Medians over the turns; seconds, one part after the other.
struct JoinTimes {
  double start_s = 0;       ///< from the start of the process until it listens
  double link_s = 0;        ///< until it asks for the state
  double offer_s = 0;       ///< until the first chunk is asked for: others copy their state and hash it
  double transfer_s = 0;    ///< until the last chunk is here
  double place_s = 0;       ///< until its state is that of the record
  double contribute_s = 0;  ///< until the first round with samples of its own is decided

  double state_s() const { return offer_s + transfer_s + place_s; }
};

struct JoinResult {
  JoinOptions options;
  JoinTimes times;
  double state_s = 0;  ///< median of JoinTimes::state_s
  double round_s = 0;  ///< of the peers before it came
  /// The same bytes over one plain connection of the loopback, memory to memory, hashed once, in the same
  /// turns.
  double bound_s = 0;
};

/// `tw bench join`: a peer joins a run on the loopback.
Result<JoinResult> join(const JoinOptions& options, const Say& say);

std::string render(const JoinResult& result);
std::string to_json(const JoinResult& result);

}  // namespace tw::measure
