// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "swarm/ballots/history.h"
#include "swarm/leases/holdback.h"
#include "swarm/members/barred.h"
#include "swarm/members/detector.h"
#include "swarm/members/heartbeat_schedule.h"
#include "swarm/members/roster.h"
#include "swarm/members/stance.h"
#include "swarm/resends.h"
#include "wire/rank.h"

namespace tw::swarm {

/// The other processes as this peer sees them: which are linked, silent, behind, fresh, or at the end of the
/// run, what each was told or has to be told, and which may not link. It decides nothing about rounds. A step
/// machine; one thread. `members` are those of this peer's head; empty before there is one.
class Membership {
 public:
  using Members = std::vector<wire::Member>;

  /// self: outlives it.
  Membership(const wire::Member& self, std::vector<std::string> bootstrap);

  /// Which processes are linked, which addresses are dialled.
  Roster& roster() { return roster_; }

  const Roster& roster() const { return roster_; }

  // ---- links
  void on_open(Instant now, const wire::Member& peer, const wire::Marks& marks);
  /// Requires that the peer is linked.
  void on_close(Instant now, PeerId peer, const Members& members);

  /// False for a process that a later one replaced, and for one just linked in a member's place.
  bool may_link(Instant now, const wire::Member& process, const Members& members) const;

  /// A record names `members` after `before`. Returns the linked peers that use a member's id with another
  /// incarnation.
  std::vector<PeerId> squatters(const Members& before, const Members& members);

  /// Bars this linked process for as long as the rightful one may take to link.
  void bar(Instant now, PeerId squatter);

  /// The process that founds the run is linked under this id.
  bool has_founder(PeerId id) const { return has_founder_here() && founder_->peer == id; }

  /// A process that founds the run is linked.
  bool has_founder_here() const { return founder_ && roster_.is_open(*founder_); }

  // ---- what they say
  /// A byte of the peer arrived, bulk data included.
  void on_sign_of_life(Instant now, PeerId peer) { detector_.heard(now, peer); }

  /// Returns the heartbeat as it counts: it may be older than the record that made its sender a member.
  wire::Heartbeat on_heartbeat(Instant now, PeerId from, const wire::Heartbeat& told, const History& history);

  /// Progress of a linked peer or of this one, of whichever round, or this one's own heartbeat.
  void hear(PeerId from, const auto& told) { stances_.hear(from, told); }

  /// Stances of the linked peers and of this one.
  const Stances& stances() const { return stances_; }

  /// `from` told of these peers.
  void on_peers(PeerId from, const Members& told, const Members& members);

  /// The peer waits for the history to begin, with the same parameters.
  void on_fresh(PeerId peer) { fresh_.insert(peer); }

  /// The peer asks for everything that is due to it in this round once more.
  void ask_again(Instant now, PeerId peer) { resends_.ask(now, peer); }

  /// True, once, when that is due.
  bool take_resend(Instant now, PeerId peer) { return resends_.take_due(now, peer); }

  /// A commit told of a history with this rank.
  void on_commit(Instant now, const wire::Rank& told);

  // ---- rounds
  /// The round after this record begins.
  void begin_round(Instant now, const wire::Record& record);

  // ---- time
  /// Peers that fell silent. `hurries`: a round is overdue.
  std::vector<Detector::Silence> step(Instant now, bool hurries);

  /// One tick (HeartbeatSchedule::kTick) has passed. Returns the peers that get a heartbeat now; those in
  /// front always.
  std::vector<PeerId> tick(std::set<PeerId> front) { return heartbeats_.tick(std::move(front)); }

  /// Where links are many: now and then, a peer that gets told of some of them.
  std::optional<std::pair<PeerId, wire::Peers>> gossip(Instant now) const;

  /// The run begins with a state that these members have to take first.
  void take_the_first_state(Instant now, const std::vector<wire::Member>& members);

  /// Joiners that the leader waits for from now on, and did not wait for before.
  std::vector<PeerId> hold_back(Instant now);

  const std::vector<PeerId>& held_back_for() const { return held_back_for_; }

  // ---- answers
  /// Peers that a newcomer is told of when it links; the leader, or gossip(), tells it of the others.
  Members introductions(PeerId newcomer, std::optional<PeerId> leads, bool to_all) const;

  /// Sets the fields of a heartbeat that depend on its receiver: times, echo, and when the next one comes.
  void address(wire::Heartbeat& beat, Instant now, PeerId to) const;

  wire::Member process(PeerId peer) const;

  /// True for this very process, and for a linked one that follows the history.
  bool is_here(const wire::Member& member) const;

  /// The peer has not linked since the round began, a short time ago: the mesh is still being built.
  bool presumed_live(Instant now, PeerId peer) const;

  /// All members are here, or have had the time to link.
  bool is_meshed(Instant now, const Members& members) const;

  /// Processes that follow the history, this one included, by incarnation.
  std::map<PeerId, std::uint64_t> live() const;

  /// Members whose absence keeps this peer's side from being a majority; empty when it is one, or when no
  /// member is here. If only this peer's own id is missing, the members that are here.
  std::vector<PeerId> missing_for_a_majority(const Members& members) const;

  /// Members whose last word was not that they have this record, and linked peers that fetch the state.
  std::vector<PeerId> lacking(const Digest& record, const Members& members) const;

  /// Peers that wait for the history to begin and can take part from its first round on.
  const std::set<PeerId>& fresh() const { return fresh_; }

  /// The history that goes before all others that heartbeats or a late commit told of, if any.
  wire::Rank best_told(Instant now) const;

  Duration round_trip(PeerId peer) const { return detector_.round_trip(peer); }

  Duration silence(Instant now, PeerId peer) const { return detector_.silence(now, peer); }

  std::uint64_t held_bytes() const;

  static constexpr std::uint64_t kNoteBytes = 64;  ///< an id, what is known of it, its place in a tree

 private:
  const wire::Member& self_;
  Roster roster_;
  Detector detector_;
  HeartbeatSchedule heartbeats_;
  Barred barred_;
  Resends resends_;
  Holdback holdback_;
  std::vector<PeerId> held_back_for_;
  std::set<PeerId> lost_;  // links that were open and are no more
  std::set<PeerId> fresh_;
  Stances stances_;
  std::map<PeerId, Digest> heads_;       // the last record that each reported, linked or not
  std::optional<wire::Member> founder_;  // linked last of those that found the run
  wire::Rank told_by_commit_;
  Instant told_by_commit_at_{};
  Instant round_since_{};
};

}  // namespace tw::swarm
