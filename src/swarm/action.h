// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "swarm/ballots/shared_plan.h"
#include "wire/messages.h"

// Actions that the swarm asks of its owner.
namespace tw::swarm {

struct Dial {
  std::string address;
};

struct Hangup {
  PeerId peer;
};

/// A plan arrived: average by it.
struct Reduce {
  SharedPlan plan;  ///< not empty
};

/// The round is decided, and its mean is here: apply it, then call applied().
struct Committed {
  wire::Record record;
};

/// Others are ahead, or this peer lacks what they decided: take their state, then call begin().
struct CatchUp {
  std::string why;
  bool differs = false;  ///< its parameters differ from the leader's after the same mean
};

/// `peer` took a state and dropped what it had got: send it this peer's part of the round anew.
struct SendAgain {
  PeerId peer;
};

/// This peer leaves before the round ends: send the sums in these slots to `to`, then call handed_over().
struct HandOver {
  PeerId to;
  std::vector<std::uint32_t> slots;
};

/// This peer's part in the run is over.
struct Ended {
  std::string why;
  bool failed = false;
};

using Action = std::variant<Dial, Hangup, Reduce, Committed, CatchUp, SendAgain, HandOver, Ended>;

}  // namespace tw::swarm
