// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "swarm/ballots/shared_plan.h"
#include "wire/messages.h"

// What the swarm wants done by its owner.
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

/// The round is decided, and its mean is here: apply it, then say applied().
struct Committed {
  wire::Record record;
};

/// Others are ahead, or this peer lacks what they decided: take their state, then say begin().
struct CatchUp {
  std::string why;
  bool differs = false;  ///< its parameters are not those of the leader, after the same mean
};

/// It was taking state and threw away what it got meanwhile: its part of the round is due from the start.
struct SendAgain {
  PeerId peer;
};

/// It leaves before the round ends: send the sums in these slots to that peer, then say handed_over().
struct HandOver {
  PeerId to;
  std::vector<std::uint32_t> slots;
};

/// This peer's part in the run is over.
struct Ended {
  std::string why;
  bool failed = false;
};

using Decision = std::variant<Dial, Hangup, Reduce, Committed, CatchUp, SendAgain, HandOver, Ended>;

}  // namespace tw::swarm
