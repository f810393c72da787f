// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/ids.h"
#include "base/range_set.h"

/// Messages about work that cannot be done.
namespace tw::wire {

/// To the leader, before the Progress that gives them back: microbatches that the sender cannot compute.
struct Failures {
  Round round = 0;
  RangeSet microbatches;
  std::string why;  ///< of the newest of them: sample, object, bytes and answer
  /// Those of them that the sender computes without what is gone, once nobody has it: when they are leased to
  /// it again.
  RangeSet skippable{};

  static void fields(auto& self, auto&& field) {
    field(self.round, self.microbatches, self.why, self.skippable);
  }

  bool operator==(const Failures&) const = default;
};

/// From the leader: peers cannot compute a part of this round, so the run stops.
struct Stop {
  Round round = 0;
  std::string why;

  static void fields(auto& self, auto&& field) { field(self.round, self.why); }

  bool operator==(const Stop&) const = default;
};

}  // namespace tw::wire
