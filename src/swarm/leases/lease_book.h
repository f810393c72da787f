// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/range_set.h"
#include "base/rarely.h"
#include "swarm/leases/lease_rules.h"
#include "wire/messages.h"

namespace tw::swarm {

/// The leader's account of one round's microbatches: each is free, held or done, and held or done by exactly
/// one peer. LeaseRules say how many there are and how leases are cut.
class LeaseBook {
 public:
  using Options = swarm::TargetBatch;

  explicit LeaseBook(LeaseRules rules);

  struct Grant {
    PeerId peer;
    std::uint32_t slot = 0;
    RangeSet microbatches;
  };

  /// Progress of a peer. Adds what is done; when the peer gave back, what it no longer holds becomes free.
  void report(PeerId peer, const wire::Progress& progress);

  /// Progress that a peer reports to a new leader, which knows nothing of earlier leases. False when a slot
  /// holds microbatches that another peer claimed before (leased again while the two could not reach the
  /// leader), or nothing at all (its sum was lost). Such a slot does not count and gets no further lease.
  bool adopt(PeerId peer, const wire::Progress& progress);

  /// Leases of wire::Record::ahead, which this peer knows already.
  void begin_with(PeerId peer, const RangeSet& microbatches);

  /// The microbatches of the next round for each of these peers, by speed and in whole grains; what is left
  /// over is for those that are done first.
  std::vector<Grant> ahead(const std::vector<PeerId>& peers, std::uint64_t microbatches) const;

  /// Sums that this peer keeps for others that leave. From now on they count as its own, unless another peer
  /// computed their microbatches meanwhile.
  void take_kept(PeerId peer, const wire::Progress& progress);

  /// True when this peer holds or has done something.
  bool has_any(PeerId peer) const;

  /// Number of slots with something done.
  std::size_t sums_of(PeerId peer) const;

  /// Number of sums that leaving peers handed over to this one.
  std::size_t kept_by(PeerId peer) const;

  /// Microbatches that are not done, without those that this peer holds.
  std::uint64_t left_of_others(PeerId peer) const;

  /// The peer does not count in this round any more. Returns what becomes free again. What it would have
  /// skipped counts as not tried: otherwise the loss of kMostFailed such peers would end the run.
  RangeSet forget(PeerId peer);

  /// Microbatches that this peer cannot compute: once given back, only others get them.
  void note_failures(PeerId peer, const wire::Failures& failures);

  /// Number of peers that have failed at anything.
  std::size_t failed_peers() const { return failures_.size(); }

  /// The run stops when this many peers have failed at one microbatch.
  static constexpr std::size_t kMostFailed = 3;

  /// A free microbatch that kMostFailed peers, or all of `able`, cannot compute. An empty `able` is not
  /// hopeless: all leave, and others may come.
  struct Hopeless {
    std::uint64_t microbatch = 0;
    std::vector<PeerId> failed;
    std::string why;  ///< as the last of them reported
  };

  std::optional<Hopeless> hopeless(const std::set<PeerId>& able) const;

  /// Leases for the peers of `eligible` that want more, into their open slots, in whole grains while there
  /// are. No peer gets what it or kMostFailed peers failed at, and none without an open slot gets anything.
  std::vector<Grant> feed(const std::set<PeerId>& eligible, const Rarely& chance = {});

  /// This peer failed at this microbatch, can do without what is gone (wire::Failures::skippable), and has a
  /// slot for it.
  bool may_skip(PeerId peer, std::uint64_t microbatch) const;

  /// A lease of what is hopeless to a peer of `eligible` that may skip it and wants more. Nothing: there is
  /// none now. A peer that fails at it again reports that it may not skip it any more.
  std::optional<Grant> grant_to_skip(const std::set<PeerId>& eligible, std::uint64_t microbatch);

  /// The peer that should give back what it has not begun, when others are idle and nothing is free. at_will:
  /// without these conditions.
  std::optional<PeerId> worth_recalling(const std::set<PeerId>& eligible, bool at_will = false);

  /// Each holder has at most one grain, nothing that others have failed at, and owes no answer to a recall.
  /// If nothing is free either, it is time to call.
  bool nearly_done() const;

  /// All slots of each peer with what is done or held, in the order of `order`; peers without any are left
  /// out.
  std::vector<wire::Contribution> contributions(const std::vector<PeerId>& order) const;

  /// The sums of all slots are being sent: from now on the leases of each peer go to its next slot, to none
  /// before `next`.
  void close_slots(std::uint32_t next = 0);

  /// False once the peer has used all its kLeaseSlots of the round.
  bool has_slot(PeerId peer) const;

  std::uint64_t samples(const RangeSet& microbatches) const { return rules_.samples(microbatches); }

  bool has_free() const { return !free_.empty(); }

  const RangeSet& free() const { return free_; }

  /// All peers that were heard of.
  std::vector<PeerId> peers() const;

  /// Peers that hold microbatches which are not done.
  std::vector<PeerId> holders() const;

  bool holds(PeerId peer) const;

  /// True from a recall to its answer.
  bool is_recalled(PeerId peer) const;

  /// The open slot of this peer, with what was leased into it.
  wire::SlotProgress open_slot(PeerId peer) const;

  double samples_per_s(PeerId peer) const;

  /// Microbatches that this peer computes at once.
  std::uint64_t grain(PeerId peer) const;

 private:
  struct Account {
    std::map<std::uint32_t, wire::SlotProgress> slots;
    std::uint32_t open = 0;  // leases go to this slot; kLeaseSlots: it has used them all
    double samples_per_s = 0;
    std::uint64_t grain = 1;  // microbatches that it does at once
    bool hungry = false;
    bool recalled = false;  // asked to give back, answer under way: no grants meanwhile

    std::uint64_t held() const;
  };

  Account& account_of(PeerId peer);
  void take(Account& account, const wire::Progress& progress);
  void lease(Account& account, const RangeSet& given);
  bool take_from_giver(PeerId taker, const RangeSet& done);
  double speed_of(const std::set<PeerId>& peers) const;  // 0 while the speed of one is unknown
  std::uint64_t grant_size(const Account& account, double speed_of_all, std::size_t peers) const;

  std::vector<PeerId> failed_at(std::uint64_t microbatch) const;
  RangeSet free_for(PeerId peer) const;  // what it has not failed at, nor kMostFailed peers

  LeaseRules rules_;
  std::uint32_t first_slot_ = 0;  // for leases to peers that have none
  RangeSet free_;
  std::map<PeerId, wire::Failures> failures_;  // outlast forget()
  PeerId last_failed_;                         // the last one that reported something new
  std::map<PeerId, Account> accounts_;
};

}  // namespace tw::swarm
