// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "train/session/return_wait.h"
#include "wire/link_messages.h"
#include "world/network.h"

namespace tw::train {

/// A joiner that reaches nobody for so long gives up. Once it has heard of a record of the run, it searches
/// for the patience of the run at least, as members do.
inline constexpr Duration kGiveUpJoining = std::chrono::seconds(30);

/// How a peer looks for the members of its run: what the addresses that it dials answer, and how long it goes
/// on when nobody comes. It decides; dialling is the swarm's. Loop thread only; times are those of
/// CountedTime.
class PeerSearch {
 public:
  struct Options {
    PeerId self;
    std::vector<std::string> join;  ///< addresses of peers; empty: it has nobody to join
    bool returns = false;           ///< the run had begun before this process
    Duration patience{};            ///< of the run
  };

  /// How the peer stands at the time of a call.
  struct Situation {
    wire::PeerState peer_state = wire::PeerState::fresh;
    bool linked = false;     ///< to at least one peer
    bool offered = false;    ///< at least one of them has the state of the run
    bool restoring = false;  ///< a state is here, and is put in place
  };

  explicit PeerSearch(Options options) : options_(std::move(options)) {}

  bool asks(const std::string& address) const;

  /// Nobody listens there, or the answer was a rejection: told when it gives up.
  void found_nobody(const std::string& why);

  /// True when this answer ends the search: no later dial can bring another one.
  bool is_final(Instant now, const std::string& address, const world::Refusal& refusal,
                const Situation& situation);
  void was_rejected(const std::string& address, const world::Refusal& refusal);

  /// To be called with every tick. Why it gives up, once nobody who has the state was reached for as long as
  /// it searches.
  std::optional<std::string> gives_up(Instant now, const Situation& situation);

  /// It gave up on a run that had begun before: others may be reached later.
  bool may_try_again() const { return gave_up_ && options_.returns; }

  /// Until it gives up; nothing while somebody is there.
  std::optional<Duration> left(Instant now) const;

  /// To be called with every tick; orphaned: it has the state, and nobody else of the run is here. True once
  /// that has lasted for the patience of the run, where this peer has nobody to join.
  bool is_alone_for_good(Instant now, bool orphaned);

  ReturnWait& return_wait() { return return_; }

  const ReturnWait& return_wait() const { return return_; }

 private:
  Duration limit() const;

  Options options_;
  ReturnWait return_;
  bool met_the_run_ = false;  ///< it has heard of a record of it
  Instant hopeless_since_ = kNever;
  Instant taken_since_ = kNever;
  Instant orphaned_since_ = kNever;
  bool gave_up_ = false;
  std::set<std::string> objecting_;  ///< addresses of `join` that answered with an objection to the token
  std::string last_answer_;          ///< since somebody was reached last
};

}  // namespace tw::train
