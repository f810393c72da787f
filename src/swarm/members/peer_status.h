// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/digest.h"
#include "base/ids.h"
#include "swarm/members/stance.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Where each peer stands in one round under one ballot, as its leader sees it: who counts, who votes, who
/// works, who is in the next record. A value that knows neither clock nor socket; one thread.
class PeerStatus {
 public:
  enum class Status : std::uint8_t {
    absent,     ///< it cannot be reached, and had no part in this ballot
    linked,     ///< no member; it has not said that it stands at the head
    candidate,  ///< no member yet, at the head: it gets the mean, and is in the next record
    early,      ///< the same, and it works for this round; it neither votes nor reduces
    member,     ///< the very process that the head names: it votes, works and reduces
    refused,    ///< member or not: it gets the mean, and what it computes does not count
    excluded,   ///< out of this ballot for good, whether it can be reached or not
  };

  /// The peers that can be reached, with their incarnations.
  using Live = std::map<PeerId, std::uint64_t>;

  /// The last report of a peer about itself in this round.
  struct Word {
    Digest parameters;
    std::vector<PeerId> seats{};  ///< of members that left: it votes for them
    bool gave_seat = false;       ///< it decides nothing any more
  };

  /// `members`: of the head; `self` leads. asks_first: a member works only once it has promised this ballot.
  /// stances: those of the linked peers before this round.
  PeerStatus(const wire::Member& self, std::vector<wire::Member> members, bool asks_first,
             Stances stances = {});

  Status of(PeerId peer) const;

  // ---- what happens to peers
  /// `live` includes the leader. Returns the peers that are gone or came back as another process. A peer that
  /// had a part, by its own word or by `has_a_part`, is excluded even if it comes back: what it had was given
  /// to others.
  std::vector<PeerId> set_live(const Live& live, const std::function<bool(PeerId)>& has_a_part);

  /// A reachable peer reports that it stands at the head. True when it is newly a candidate.
  bool told(const wire::Member& from, const Word& word);

  /// The report of a peer about itself in its promise.
  void note(PeerId peer, const Word& word);

  /// A heartbeat, or progress in any round. A peer that leaves keeps its part in this round.
  void hear(PeerId peer, const auto& told) { stances_.hear(peer, told); }

  /// A member follows this ballot.
  void promised(PeerId peer);

  /// Requires that it counts. Its work does not count any more. False when it is refused already.
  bool refuse(PeerId peer);

  /// Requires that it counts. It is out of this ballot.
  void exclude(PeerId peer);

  // ---- answers
  bool is_reachable(PeerId peer) const { return live_.contains(peer); }

  /// Incarnation of the process that can be reached under this id.
  std::uint64_t incarnation(PeerId peer) const;

  /// True if it can be reached, and is neither absent nor excluded.
  bool counts(PeerId peer) const;

  /// True if it can be reached, and is the very process that the head names; it may be excluded.
  bool is_seated(PeerId peer) const;

  /// The process that can be reached, if it is a member or a candidate.
  const wire::Member* process(PeerId peer) const;

  /// Its last report; null when it has reported nothing.
  const Word* word(PeerId peer) const;

  /// What it said of itself in this round or before.
  const Stance& stance(PeerId peer) const { return stances_.of(peer); }

  bool leaves(PeerId peer) const { return stance(peer).leaving; }

  /// True if it expects to stay.
  bool is_steady(PeerId peer) const { return !leaves(peer) && stance(peer).outlook == wire::Outlook::steady; }

  /// A peer that counts votes for this member, which left.
  bool has_its_seat_kept(PeerId member) const;

  /// True if the work of some peer was refused under this ballot, even if that peer is gone.
  bool has_refused() const { return refusals_ > 0; }

  /// Peers that count, with their incarnations.
  Live counted() const;

  /// Members that count, in their order. They vote.
  const std::vector<PeerId>& present() const { return present_; }

  bool has_quorum() const { return has_quorum_; }

  /// The same if excluded members counted: a new ballot would count them.
  bool would_have_quorum() const { return would_have_quorum_; }

  bool is_quorum(const std::set<PeerId>& peers) const;

  /// Peers that get leases, since they have the parameters of the leader.
  const std::set<PeerId>& eligible() const { return eligible_; }

  /// Peers whose gradients can be in this round, in the order of the mean.
  std::vector<PeerId> workers() const;

  /// Peers that can reduce a share.
  std::vector<PeerId> owners() const;

  /// Peers that get the mean. Requires the leader's own report.
  std::vector<PeerId> participants() const;

  /// Sets the peers whose machines stay.
  void set_anchors(std::set<PeerId> anchors) { anchors_ = std::move(anchors); }

  bool is_anchor(PeerId peer) const { return anchors_.contains(peer); }

  /// Members of the next record: anchors, then the others, both longest-lived first; those that may be gone
  /// soon come last, and after them those whose thread is away. A peer that is full is none. Requires the
  /// leader's own report.
  std::vector<wire::Member> next_members() const;

  /// Seated peers that are excluded.
  std::vector<PeerId> uncounted() const;

  /// Peers at the head that are no members, the excluded among them.
  const std::vector<wire::Member>& candidates() const { return candidates_; }

  const std::vector<wire::Member>& members() const { return members_; }

  /// At most this many non-members can work for, or join in, one round: others wait for the next.
  static constexpr std::size_t kMostNewcomers = 1024;

  bool has_room_for(PeerId newcomer) const;

  /// Size of what is kept about peers, in entries of a few machine words.
  std::size_t notes() const;

 private:
  void enter(PeerId peer, Status next);
  bool is_eligible(PeerId peer) const;
  bool fits(PeerId peer) const;
  void count();
  void count(PeerId peer);

  PeerId self_;
  std::vector<wire::Member> members_;
  bool asks_first_;
  Live seats_;  // members_
  Live live_;
  std::map<PeerId, Status> status_;  // without those that are absent
  std::map<PeerId, Word> words_;
  Stances stances_;
  std::set<PeerId> promised_;
  std::size_t refusals_ = 0;
  std::vector<wire::Member> candidates_;  // in the order in which they came
  std::set<PeerId> anchors_;
  std::vector<PeerId> present_;     // count()
  std::set<PeerId> eligible_;       // count()
  bool has_quorum_ = false;         // count()
  bool would_have_quorum_ = false;  // count()
};

/// Whether this peer, which works for the round, has not told yet that it has applied the last update: until
/// then it cannot reduce. Nobody waits for one that is away.
bool is_updating(const PeerStatus& peers, PeerId peer);

}  // namespace tw::swarm
