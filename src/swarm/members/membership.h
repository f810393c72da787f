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
#include "swarm/resends.h"
#include "wire/rank.h"

namespace tw::swarm {

/// The other processes as this peer sees them: which are linked, silent, behind, fresh, or at the end of the
/// run, what each was told and has to be told, and which may not be linked. It decides nothing about rounds.
/// A step machine; one thread. `members` are those of this peer's head; none before there is one.
class Membership {
 public:
  using Members = std::vector<wire::Member>;

  Membership(wire::Member self, std::vector<std::string> bootstrap);

  const Roster& roster() const { return roster_; }

  // ---- links
  void on_open(Instant now, const wire::Member& peer, const wire::Marks& marks);
  /// The peer is linked.
  void on_close(Instant now, PeerId peer, const Members& members);

  void on_refused(Instant now, const std::string& address) { roster_.refused(now, address); }

  /// A dial of this address found somebody to whom there is a link already.
  void on_linked_there(const std::string& address) { roster_.linked_there(address); }

  void is_own(const std::string& address) { roster_.is_own(address); }

  /// These took part in the run: they are dialled.
  void seek(const Members& members);

  /// Addresses to dial now.
  std::vector<std::string> dials(Instant now, const Members& members, const Rarely& chance);

  /// Neither a process that a later one replaced, nor one that was linked in the place of a member just now.
  bool may_link(Instant now, const wire::Member& process, const Members& members) const;

  /// A record names `members` after `before`. Returns those that are linked under the id of a member without
  /// being that process.
  std::vector<PeerId> squatters(const Members& before, const Members& members);

  /// This linked process stays out for as long as the one whose id it has may take to be linked.
  void bar(Instant now, PeerId squatter);

  /// The process that founds the run is linked under this id.
  bool has_founder(PeerId id) const;

  // ---- what they say
  /// Any byte of a peer, bulk too.
  void on_sign_of_life(Instant now, PeerId peer) { detector_.heard(now, peer); }

  /// Returns it as it counts: it may have been said before the record that made its sender a member came.
  wire::Heartbeat on_heartbeat(Instant now, PeerId from, const wire::Heartbeat& told, const History& history);

  /// Somebody told of these peers.
  void on_peers(PeerId from, const Members& told, const Members& members);

  /// It waits for the history to begin, with the same parameters.
  void on_fresh(PeerId peer) { fresh_.insert(peer); }

  /// All that is due in this round is due once more to a peer that asks for it.
  void ask_again(Instant now, PeerId peer) { resends_.ask(now, peer); }

  /// True, once, when that is to be done now.
  bool take_resend(Instant now, PeerId peer) { return resends_.take_due(now, peer); }

  /// A commit told of a history that goes so far.
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

  /// Where links are many: one peer that is told of some of them, now and then.
  std::optional<std::pair<PeerId, wire::Peers>> gossip(Instant now) const;

  /// The run begins with a state that these have to take first.
  void take_the_first_state(Instant now, const std::vector<wire::Member>& members);

  /// Joiners that the leader waits for from now on, and did not before.
  std::vector<PeerId> hold_back(Instant now);

  const std::vector<PeerId>& held_back_for() const { return held_back_for_; }

  // ---- answers
  /// The peers that a newcomer is told of when its link comes up. The leader, or gossip(), tells the others.
  Members introductions(PeerId newcomer, std::optional<PeerId> leads, bool to_all) const;

  /// Sets what makes a heartbeat one to this peer: times, echo, and when the next one comes.
  void address(wire::Heartbeat& beat, Instant now, PeerId to) const;

  wire::Member process(PeerId peer) const;

  /// This very process, or linked to it, and it follows the history.
  bool is_here(const wire::Member& member) const;

  /// It was not linked yet since the round began, which is not long ago: the mesh is still being knotted.
  bool presumed_live(Instant now, PeerId peer) const;

  /// All members are here, or have had the time to be linked.
  bool is_meshed(Instant now, const Members& members) const;

  /// Processes that follow the history, this one included, by incarnation.
  std::map<PeerId, std::uint64_t> live() const;

  /// Members whose absence keeps this peer's side from being a majority; empty when it is one, or when no
  /// member is here. Where only this peer's own id is missing, those that are here.
  std::vector<PeerId> missing_for_a_majority(const Members& members) const;

  /// Members that have not said, as their last word, that they have this record, and linked peers that fetch
  /// the state.
  std::vector<PeerId> lacking(const Digest& record, const Members& members) const;

  /// They wait for the history to begin, and can take part from its first round on.
  const std::set<PeerId>& fresh() const { return fresh_; }

  /// The history that goes before all others that are told of, by heartbeats or a late commit, if any.
  wire::Rank best_told(Instant now) const;

  Duration round_trip(PeerId peer) const { return detector_.round_trip(peer); }

  Duration silence(Instant now, PeerId peer) const { return detector_.silence(now, peer); }

  std::uint64_t held_bytes() const;

  static constexpr std::uint64_t kNoteBytes = 64;  ///< an id, what is known of it, its place in a tree

 private:
  wire::Member self_;
  Roster roster_;
  Detector detector_;
  HeartbeatSchedule heartbeats_;
  Barred barred_;
  Resends resends_;
  Holdback holdback_;
  std::vector<PeerId> held_back_for_;
  std::set<PeerId> lost_;  // links that were open and are no more
  std::set<PeerId> fresh_;
  std::map<PeerId, Digest> heads_;       // the record that each said last that it has, its link gone or not
  std::optional<wire::Member> founder_;  // linked last of those that found the run
  wire::Rank told_by_commit_;
  Instant told_by_commit_at_{};
  Instant round_since_{};
};

}  // namespace tw::swarm
