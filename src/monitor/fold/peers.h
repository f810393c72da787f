// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/fold/peer_track.h"

namespace tw::monitor {

/// All peers of a run, from their reports about themselves and each other.
class Peers {
 public:
  /// lane_rounds: that the lane of each peer keeps.
  explicit Peers(std::size_t lane_rounds = Board::kMostLaneRounds) : lane_rounds_(lane_rounds) {}

  /// What an event tells beyond the peers.
  struct News {
    std::optional<Interruption> interruption;
    std::optional<Round> rewound;  ///< rounds after this one are repeated
  };

  News take(const Seen& seen);

  /// An event about a round that the run dropped.
  void take_dropped(const Seen& seen) {
    if (seen.writer() != PeerId{}) track(seen.writer()).take_dropped(seen);
  }

  /// A status of a peer.
  News take(PeerId from, const wire::Status& status, double at_s);

  /// It counts as lost: its losses of others are ignored.
  bool is_lost(PeerId peer) const;

  const std::map<PeerId, PeerTrack>& all() const { return tracks_; }

  /// A loss that did not happen: the peer's own log says that it ended after the last round.
  bool ended_itself(const Interruption& loss, Round last) const;

  /// It neither left nor was lost, or only after the last round.
  static bool stayed(const Standing& standing, Round last);

 private:
  /// What a commit belongs to: the history of last_commit_, one with which the run begins again, or one
  /// beside it.
  enum class History { goes_on, begins_again, other };

  PeerTrack& track(PeerId peer) { return tracks_.try_emplace(peer, peer, lane_rounds_).first->second; }

  void take_driver(const Seen& seen, News& news);
  void take_accumulate(const Seen& seen, News& news);
  void take_commit(const Seen& seen, const event::Commit& commit, News& news);
  void take_restore(const Seen& seen, const event::Restore& restored);
  History history_of(const event::Commit& commit, Round round, double started_s) const;
  static void note_alone(Round round, const event::Commit& commit, PeerTrack& peer);
  void credit(Round round, const event::Commit& commit);
  void take_join(const Seen& seen, News& news);
  void take_leave(const Seen& seen, News& news);
  void take_lost(const Seen& seen, const event::Lost& lost, News& news);
  void rewind(Round to, double since_s, const Seen& seen, News& news);

  std::size_t lane_rounds_;
  std::map<PeerId, PeerTrack> tracks_;

  /// A round, and when a peer reported its commit.
  struct Committed {
    Round round = 0;
    double at_s = 0;
  };

  std::optional<Round> first_round_;      ///< of the run, if events tell it
  std::map<PeerId, Round> named_;         ///< the first round with a record that names this contributor
  std::string first_record_;              ///< of round 1, in the newest history that begins with it
  std::optional<Committed> last_commit_;  ///< nothing: a resume was told since
};

}  // namespace tw::monitor
