// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "train/session/search/held_elsewhere.h"
#include "wire/link_messages.h"
#include "world/network.h"

namespace tw::train {

/// A joiner that reaches no peer for this long gives up. Once it knows a record of the run, it searches at
/// least for the patience of the run, as members do.
inline constexpr Duration kGiveUpJoining = std::chrono::seconds(30);

/// How a peer searches for the members of its run: answers of dialled addresses, and the time until it gives
/// up. It only decides; the swarm dials. Loop thread only; times are those of CountedTime.
class PeerSearch {
 public:
  struct Options {
    PeerId self;
    std::vector<std::string> join;  ///< addresses of peers
    std::string meets_in;           ///< where it looks for others, for words alone; empty: nowhere
    bool founds = false;            ///< it begins the run if it finds none
    bool returns = false;           ///< the run had begun before this process
    Duration patience{};            ///< of the run
  };

  /// State of the peer at the time of a call.
  struct Situation {
    wire::PeerState peer_state = wire::PeerState::fresh;
    bool linked = false;     ///< to at least one peer
    bool offered = false;    ///< at least one of them has the state of the run
    bool restoring = false;  ///< a fetched state is being restored
  };

  explicit PeerSearch(Options options) : options_(std::move(options)) {}

  bool asks(const std::string& address) const;

  /// No peer listens there, or it refused: part of the message when the search gives up.
  void nobody_answered(const std::string& why);

  /// True when this answer ends the search: every address of `join` has refused for good, more than once.
  /// What one address says ends nothing while another one may let this peer in.
  bool is_final(Instant now, const std::string& address, const world::Refusal& refusal,
                const Situation& situation);
  void was_rejected(Instant now, const std::string& address, const world::Refusal& refusal);

  /// A peer was linked at this address.
  void was_admitted(const std::string& address) { taken_.erase(address); }

  /// True when another process has the place of this one for good. `others`: addresses of the other members
  /// of the last record that a majority decided. Most of them have refused it as taken, each one for longer
  /// than a squatter can keep a member's place.
  bool is_replaced(Instant now, const std::vector<std::string>& others) const;

  /// To be called with every tick. The reason to give up, once no peer with the state was reached for the
  /// whole time.
  std::optional<std::string> gives_up(Instant now, const Situation& situation);

  /// It gave up a run that had begun before: others may be reachable later.
  bool may_try_again() const { return gave_up_ && options_.returns; }

  /// Time until it gives up; nothing while a peer is linked.
  std::optional<Duration> left(Instant now) const;

  /// To be called with every tick; orphaned: it has the state, and no other peer of the run is linked. True
  /// once that has lasted for the patience of the run, if this peer founds.
  bool is_alone_for_good(Instant now, bool orphaned);

 private:
  Duration limit() const;

  /// Answers of one address that the id of this peer is taken.
  struct Taken {
    Instant since;
    Instant last;
  };

  void note_taken(Instant now, const std::string& address);

  Options options_;
  bool met_the_run_ = false;  ///< it knows a record of the run
  Instant hopeless_since_ = kNever;
  std::map<std::string, Taken> taken_;  ///< by address, since a peer was last linked there
  Instant orphaned_since_ = kNever;
  bool gave_up_ = false;
  std::map<std::string, int> objections_;  ///< of addresses of `join`, since a peer was last reached
  std::string last_answer_;                ///< since a peer was last reached
};

}  // namespace tw::train
