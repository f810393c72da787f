// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

/// Drives the real Proposer, Acceptor and History of three peers (explorer_nightly: four) through every order
/// of events within bounds, instead of through those that chance draws.
///
/// A message that was sent stays in the world: it may be delivered at any later time, to each process, again
/// and again, or never. So every order, every loss and every duplicate is among what is explored. The set
/// of peers that a leader takes to be here is chosen anew at each of its steps, whoever lives. A process that
/// crashes is one that gets no message any more, so that crashes count only where another process is started
/// under the same id; it takes the state of a living one.
///
/// States that are the same are explored once, and steps whose order makes no difference are taken in one
/// order: a bid comes first, a decision as soon as it can, a vote with its plan (cast.h and explorer.cc say
/// why). There is no symmetry between peers to use: the place in the list of members decides who owns which
/// ballot. Not explored: decisions without a majority (patience), ballots and plans beyond the bounds, peers
/// that lie in any other way than with plans of a ballot that is not theirs.
namespace tw::explorer {

struct Bounds {
  Round rounds = 2;
  std::vector<Ballot> ballots = {3, 3};  ///< of each round: 0, 1, 2 ...
  int revisions = 0;                     ///< plans in all that are the second of their ballot
  int restarts = 0;    ///< processes in all that crash, and others under the same id that take their place
  int resyncs = 0;     ///< a process drops what it averaged and takes the state of its head anew
  int hand_overs = 0;  ///< members that leave and give their seats to another process
  int forgeries = 0;   ///< plans in all that a process sends in a ballot of another one
  std::uint64_t states = 4'000'000;  ///< give up beyond
};

struct Findings {
  std::uint64_t states = 0;
  std::uint64_t steps = 0;           ///< events that were tried, those that change nothing too
  std::uint32_t depth = 0;           ///< events on the longest of the shortest ways to a state
  bool complete = false;             ///< all states within the bounds were seen
  std::uint64_t decisions = 0;       ///< different records that were decided
  std::string broken;                ///< the law that a state breaks; empty: none does
  std::vector<std::string> story{};  ///< a shortest way there
};

/// Named bounds within which all states are seen in seconds; of four peers, in minutes. All kinds of events
/// together, in two rounds of three ballots, have too many states for a test.
struct World {
  std::string name;
  Bounds bounds;
  bool whole = true;  ///< false: there are more states than bounds.states, the nearest ones are seen
};

std::vector<World> worlds();

/// Until a law is broken or all states were seen. The laws: a round has one decision; what a majority voted
/// for, as the newest plan of its ballot, is what every later ballot proposes; nobody votes for a forged
/// plan; a record that is applied is the decided one, follows the decided one before it, and its mean is the
/// one that is here.
Findings explore(const Bounds& bounds);

}  // namespace tw::explorer
