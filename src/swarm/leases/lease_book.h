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
/// one peer. How many there are, and how leases are cut, is the affair of LeaseRules.
class LeaseBook {
 public:
  using Options = swarm::TargetBatch;

  explicit LeaseBook(swarm::LeaseRules rules);

  /// What a peer says of itself. Adds what is done; when it gave back, what it no longer holds becomes free.
  void report(PeerId peer, const wire::Progress& progress);

  /// What a peer says to a new leader, who knows nothing of earlier leases. False when a slot holds
  /// microbatches that somebody else claimed before (given out again while the two could not reach the
  /// leader), or nothing at all (its sum was lost): such a slot does not count, and no further lease goes
  /// to it.
  bool adopt(PeerId peer, const wire::Progress& progress);

  /// Sums that this peer keeps for others that leave: from now on they count as its own, where nobody else
  /// has computed their microbatches meanwhile.
  void take_kept(PeerId peer, const wire::Progress& progress);

  /// Something is held or done by this peer.
  bool has_any(PeerId peer) const;

  /// Slots with something done.
  std::size_t sums_of(PeerId peer) const;

  /// Sums that peers which left handed over to this one.
  std::size_t kept_by(PeerId peer) const;

  /// Microbatches that are not done, without those that this peer holds.
  std::uint64_t left_of_others(PeerId peer) const;

  /// The peer does not count in this round any more. Returns what becomes free again.
  RangeSet forget(PeerId peer);

  /// What this peer cannot compute: as soon as it gave that back, others get it, and it does not.
  void note_failures(PeerId peer, const wire::Failures& failures);

  /// Peers that have failed at anything.
  std::size_t failed_peers() const { return failures_.size(); }

  /// So many peers have failed at a microbatch before the run stops.
  static constexpr std::size_t kMostFailed = 3;

  /// A microbatch that is free, and that kMostFailed peers cannot compute, or none of `able` can. Where none
  /// is able because all leave, others may come.
  struct Hopeless {
    std::vector<PeerId> failed;
    std::string why;  ///< as the last of them said
  };

  std::optional<Hopeless> hopeless(const std::set<PeerId>& able) const;

  struct Grant {
    PeerId peer;
    std::uint32_t slot = 0;
    RangeSet microbatches;
  };

  /// Leases for the hungry ones among `eligible`, of what neither they nor kMostFailed peers have failed at,
  /// into the open slot of each, in whole grains while there are. A peer without an open slot gets none.
  std::vector<Grant> feed(const std::set<PeerId>& eligible, const Rarely& chance = {});

  /// The peer that should give back what it has not begun, when others stand idle and nothing is free; or
  /// whenever there is one, at_will.
  std::optional<PeerId> worth_recalling(const std::set<PeerId>& eligible, bool at_will = false);

  /// Each holder has at most what it does at once, nothing that others have failed at, and nobody is about to
  /// give back: with nothing free, it is time to call.
  bool nearly_done() const;

  /// Every peer's slots with all that is done or held, in the order of `order`; peers without any are left
  /// out.
  std::vector<wire::Contribution> contributions(const std::vector<PeerId>& order) const;

  /// The sums of all slots are on their way: from now on the leases of each peer go to its next slot.
  void close_slots();

  /// A round has kLeaseSlots for each peer.
  bool has_slot(PeerId peer) const;

  std::uint64_t samples(const RangeSet& microbatches) const { return rules_.samples(microbatches); }

  bool has_free() const { return !free_.empty(); }

  const RangeSet& free() const { return free_; }

  /// Everybody who has been heard of.
  std::vector<PeerId> peers() const;

  /// Peers that hold microbatches which are not done.
  std::vector<PeerId> holders() const;

  bool holds(PeerId peer) const;

  /// Asked to give back; the answer is under way.
  bool is_recalled(PeerId peer) const;

  /// The open slot of this peer, with what was leased into it.
  wire::SlotProgress open_slot(PeerId peer) const;

  double samples_per_s(PeerId peer) const;

  /// Microbatches that this peer does at once.
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

  void take(Account& account, const wire::Progress& progress);
  bool take_from_giver(PeerId taker, const RangeSet& done);
  double speed_of(const std::set<PeerId>& peers) const;  // 0 while that of one is not known
  std::uint64_t grant_size(const Account& account, double speed_of_all, std::size_t peers) const;

  std::vector<PeerId> failed_at(std::uint64_t microbatch) const;
  RangeSet free_for(PeerId peer) const;  // what it has not failed at, nor kMostFailed peers

  swarm::LeaseRules rules_;
  RangeSet free_;
  std::map<PeerId, wire::Failures> failures_;  // outlast forget()
  PeerId last_failed_;                         // that told of something new
  std::map<PeerId, Account> accounts_;
};

}  // namespace tw::swarm
