// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/rarely.h"
#include "base/time.h"
#include "swarm/ballots/proposer.h"
#include "swarm/leases/lease_book.h"
#include "swarm/members/peer_status.h"
#include "swarm/straggler_policy.h"
#include "wire/outbox.h"

namespace tw::swarm {

/// The leader's leases of one round under one ballot: which peer computes what, at what pace, and when the
/// set of contributions is closed. LeaseRules say what a round has to contain. A step machine; one thread.
class Leasing {
 public:
  struct Options {
    Round round = 0;
    Ballot ballot = 0;
    std::uint32_t wait_for = 0;  ///< give no leases before this many peers are here
    Rarely rarely{};
  };

  Leasing(LeaseRules rules, Options options);

  /// After a change of the leader: what peers that promised have done and hold. was_called: the former leader
  /// had called, so some sums may be on their way already. True when the rest is left over.
  bool take_over(const PeerStatus& peers, const std::map<PeerId, wire::Promise>& promises, bool was_called);

  /// Leases with which the round begins.
  void begin_with(Instant now, const PeerStatus& peers, const std::vector<wire::Contribution>& ahead);

  /// With overlap: leases with which the next round begins, for these peers. It has so many microbatches.
  std::vector<wire::Contribution> ahead(const std::vector<PeerId>& peers, std::uint64_t microbatches) const;

  /// Samples/s of these peers, and what they compute at once; with averaging_s as it was measured less the
  /// longest time of those, since a round may be called when a peer has just begun with its last ones.
  wire::BatchChoice measured(const std::vector<wire::Member>& members, double averaging_s) const;

  /// With overlap: a peer was called in this round, perhaps by a former leader.
  void close();

  /// With overlap: the round was called. Peers may compute for the next one already.
  bool has_moved_on() const { return overlaps() && closed_; }

  /// This round is the last one: it leaves nothing over.
  void end_run() { last_ = true; }

  /// Gives no leases before these joiners have the newest record (Holdback).
  void hold_back_for(std::vector<PeerId> joiners) { held_back_for_ = std::move(joiners); }

  const std::vector<PeerId>& held_back_for() const { return held_back_for_; }

  /// True when enough peers are here for leases to go out.
  bool has_company(const PeerStatus& peers) const;

  /// Progress of a peer that works. called: the plan counts on what is leased.
  void on_progress(Instant now, const PeerStatus& peers, PeerId peer, const wire::Progress& progress,
                   bool called);

  /// Microbatches that a peer cannot compute in this round.
  void on_failures(PeerId peer, const wire::Failures& failures) { book_.note_failures(peer, failures); }

  /// LeaseBook::hopeless.
  std::optional<LeaseBook::Hopeless> hopeless(const std::set<PeerId>& able) const {
    return book_.hopeless(able);
  }

  /// LeaseBook::may_skip.
  bool may_skip(PeerId peer, std::uint64_t microbatch) const { return book_.may_skip(peer, microbatch); }

  /// Leases what is hopeless to a peer that can do without the samples that are gone, if one wants more now:
  /// LeaseBook::grant_to_skip.
  bool lets_skip(Instant now, const PeerStatus& peers, std::uint64_t microbatch);

  /// Sends leases that are due. True when from now on the rest is left over, since no peer can compute it.
  bool advance(Instant now, const PeerStatus& peers);

  /// The set of contributions may be closed: each holder has at most what it computes at once, and nothing
  /// that belongs to this round is free.
  bool is_complete() const;

  /// Contributions of the peers that work, in the order of the mean.
  std::vector<wire::Contribution> contributions(const PeerStatus& peers) const;

  /// Drops this peer and its work. Returns what others have to compute.
  RangeSet forget(const PeerStatus& peers, PeerId peer);

  /// Opens the set of contributions once more after a call: sums that are being sent stay as they are.
  void reopen(const PeerStatus& peers);

  /// True if free microbatches are left to the next round.
  bool leaves_rest() const { return short_; }

  bool has_free() const { return book_.has_free(); }

  const RangeSet& free() const { return book_.free(); }

  /// True when this peer holds or has done something of this round.
  bool has_any(PeerId peer) const { return book_.has_any(peer); }

  /// With overlap: it has work that was leased after the call.
  bool has_late(PeerId peer) const;

  /// Number of sums that this peer would have to hand over.
  std::size_t sums_of(PeerId peer) const { return book_.sums_of(peer); }

  /// Number of sums that leaving peers handed over to this one.
  std::size_t kept_by(PeerId peer) const { return book_.kept_by(peer); }

  /// Seconds that the others need for all that is not done; empty where a speed is not known.
  std::optional<double> seconds_left(const PeerStatus& peers, PeerId without) const;

  /// Peers that hold microbatches which are not done.
  std::vector<PeerId> holders() const { return book_.holders(); }

  /// Microbatches that the round waits for.
  std::vector<Awaited> awaited(Instant now) const;

  std::size_t notes() const { return paces_.size() + kNotesOfFailures * book_.failed_peers(); }

  wire::Outbox take_messages() { return std::exchange(messages_, {}); }

 private:
  static constexpr std::size_t kNotesOfFailures = 8;  ///< for the texts of a peer's failures

  /// Progress of a peer's leases.
  struct Pace {
    std::uint64_t done = 0;
    /// When the last microbatch was done, or when this leader first heard of the peer or leased to it.
    Instant since{};
    Instant leased_at{};
    Instant recalled_at{};
    Instant asked_at{};  ///< when the recall was repeated
  };

  Pace& pace_of(Instant now, PeerId peer);

  bool overlaps() const { return rules_.overlap && !last_; }

  bool may_leave_over(const PeerStatus& peers) const;
  bool slots_ran_out(const PeerStatus& peers) const;
  void feed(Instant now, const PeerStatus& peers);
  void send(Instant now, LeaseBook::Grant grant);
  void recall_again(Instant now, PeerId peer, Pace& pace);
  void lease_again(Instant now, PeerId peer, Pace& pace, const wire::Progress& progress);

  void send(PeerId to, wire::Message message) { messages_.push_back({to, std::move(message)}); }

  LeaseRules rules_;
  Options options_;
  LeaseBook book_;
  std::map<PeerId, Pace> paces_;
  std::vector<PeerId> held_back_for_;
  bool short_ = false;
  bool closed_ = false;  ///< LeaseBook::close_slots
  bool last_ = false;
  std::uint32_t sent_ = 0;  ///< leases and recalls
  wire::Outbox messages_;
};

}  // namespace tw::swarm
