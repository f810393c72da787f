// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/blob.h"
#include "base/prng.h"
#include "sim/faults.h"

namespace tw {

/// What a hostile or broken peer makes of the messages that it sends: send_nan ... truncated of FaultKind.
/// Frames go in as its session wrote them, and come out as they go to the network: changed, twice, or with
/// others from an earlier round. Each message is struck by chance, so that some get through.
class Tamper {
 public:
  Tamper(FaultKind kind, std::uint64_t seed) : kind_(kind), random_(seed) {}

  std::vector<Frame> operator()(const Frame& frame);

  /// Messages changed so far.
  int struck() const { return struck_; }

 private:
  FaultKind kind_;
  Prng random_;
  std::deque<Frame> earlier_;  ///< for replay; few
  int struck_ = 0;
};

}  // namespace tw
