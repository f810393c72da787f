// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "average/reduction/arrivals.h"
#include "average/reduction/early_results.h"
#include "average/reduction/fitness.h"
#include "average/reduction/geometry.h"
#include "average/reduction/gradient_sum.h"
#include "average/reduction/layout.h"
#include "average/reduction/mean_segments.h"
#include "average/reduction/outgoing.h"
#include "average/reduction/own_slots.h"
#include "base/check.h"
#include "base/rarely.h"
#include "base/result.h"
#include "codec/codec.h"
#include "swarm/ballots/shared_plan.h"
#include "wire/messages.h"

namespace tw::average {

/// One peer's side of one step of averaging: encodes own contributions, reduces the own share, collects the
/// mean. A step machine; it knows no clock and no socket. docs/protocol.md.
///
/// A contribution crosses the wire as the mean over its samples, in fp32 as their sum (carries_sums).
/// Site-local sum of a segment of a group: sum over its contributions, in the order of the plan, of
/// float(samples_i / samples of the group) * decode_i (of a sum: float(1 / samples of the group)), encoded
/// once (codec_of_mean) by the owner in the site.
/// Mean: sum over the groups, in the order of their numbers, of float(samples of the group / total) * decode
/// of the site-local sum, encoded once by the root, decoded by all. A single addend of weight 1 stays as it
/// was encoded: a single contribution is its group's site-local sum (re-encoded if the codec differs), a
/// single site-local sum the mean. A plan without sites has one group, whose owners are the roots.
///
/// Site-local sums and means are made as soon as all their inputs are here. Inputs are kept, so that a plan
/// with fewer or more contributions recomputes and resends only what changes: their groups' site-local sums,
/// and the mean. Memory: the encoded mean (twice while sets change), and the encoded contributions and
/// site-local sums of the own share; early messages add at most kEarlyVectors + 2 encoded vectors per sender.
/// Owners are trusted to add correctly.
///
/// Messages may arrive in any order. Nothing is sent to a peer twice while it stays a participant, except
/// results whose set changed. A peer that left the participants and returns gets everything again.
class Reduction {
 public:
  /// Pieces that the present plan needs of a sender are always taken. Others are taken only while all that is
  /// kept from it, places for its segments included, stays within this many encoded vectors.
  static constexpr std::uint64_t kEarlyVectors = 4;

  struct Options {
    PeerId self;
    StepId step;
    Geometry geometry;
    codec::Codec codec = codec::Codec::fp32;
    bool stochastic = false;  ///< rounding of own contributions; only with int8
    double norm_cap = 0;      ///< largest L2 norm, per sample, of the known part of a contribution; 0: none
    std::size_t threads = 1;  ///< at most, for many segments that are added at once; the bits stay the same
    Rarely rarely{};
  };

  explicit Reduction(Options options);

  /// An own slot is complete: its gradient sum over `samples` samples (> 0; the plan must name the same
  /// number, or the slot stays unused). A residual (average/reduction/residual.h) is added to it. Both must
  /// stay valid and unchanged while this object lives. Call it once for each slot below kMostSlots.
  void contribute(std::uint32_t slot, GradientSum gradient_sum, std::uint64_t samples,
                  std::span<const float> residual = {});

  /// True if this very contribution was made here.
  bool made(const wire::Contribution& contribution) const {
    return contribution.peer == options_.self && own_.has(contribution.slot, contribution.samples);
  }

  /// Adopts the plan if it is newer (ballot, version) than the present one; false if not, or if it is of
  /// another round or malformed (Layout::of).
  bool adopt(const swarm::SharedPlan& shared);

  /// Checks that there is such a segment and that it has this encoded length, whatever the plan: a peer that
  /// sends anything else averages another vector.
  Status fits(const wire::Scatter& scatter) const;
  Status fits(const wire::Gather& gather) const;

  /// A contribution segment. It may come before the plan that names it or makes this peer its owner: then it
  /// is kept for a later plan. Errors: wrong length, unknown segment or slot, sent twice, not finite, beyond
  /// the limit of what no plan asked for, beyond the norm cap. A refused segment changes nothing.
  Status on_scatter(PeerId from, const wire::Scatter& scatter);

  /// Reported once, and again by each later plan that counts on a contribution of this peer. May name this
  /// peer itself: own segments are judged before they are sent or added.
  std::vector<Unfit> take_unfit() { return fitness_.take_news(); }

  /// A segment of the mean, or of a site-local sum. It may come before the plan that it belongs to or that
  /// names its sender. It is used only if this or an earlier plan named its sender: the set determines its
  /// bits, and its owner may be another one in a plan still under way. Errors: as for on_scatter.
  Status on_gather(PeerId from, const wire::Gather& gather);

  /// The next bulk message for this peer, mostly contributions before results; nothing when there is none.
  std::optional<wire::Message> next_bulk(PeerId to);

  /// The link to this peer is new: what it was sent before may be lost and is due again.
  void on_new_link(PeerId peer);
  void on_lost_link(PeerId peer);  ///< what it brought is dropped, if no plan names its sender

  /// Peers for which next_bulk has something since the last call.
  std::vector<PeerId> take_wakeups();

  /// True when all own contributions are handed out and all own additions made (for the event log).
  bool scattered() const;

  /// Every segment of the mean is here, for the present plan.
  bool complete() const { return plan_ && mean_.complete(); }

  /// The encoded segments of the mean, and the digest of the decoded ones. Requires that it is complete.
  const MeanSegments& mean() const {
    TW_CHECK(complete());
    return mean_;
  }

  /// The peers that owe this one segments under the present plan, each with the first kind in this order:
  /// owes_contribution to its share; owes_site_sum, owes_mean, owes_copy (the peer may itself wait for one
  /// that owes the kind before).
  std::map<PeerId, wire::StallCause> owing() const;

  /// Segments that a peer owes this one under the present plan.
  struct Debt {
    PeerId peer;
    bool contributes = false;  ///< to the own share; otherwise results of its share
    std::uint64_t here = 0, all = 0;
  };

  std::vector<Debt> debts() const;

  /// Segments of this owner's share that are not here.
  RangeSet missing_of(PeerId owner) const;

  const swarm::SharedPlan& plan() const { return plan_; }

  /// Bytes of others: contributions, results, and the encoded mean in the making. In constant time.
  std::uint64_t held_bytes() const;

 private:
  using Input = Layout::Input;
  using Group = Layout::Group;

  const Geometry& geometry() const { return options_.geometry; }

  codec::Codec mean_codec() const { return codec_of_mean(options_.codec); }

  void lay_out(const wire::Plan& plan, Layout layout);
  void count_missing();
  void change_set(std::uint64_t set);
  void requeue();
  std::optional<wire::Message> next_contribution(Outgoing& outgoing);

  Status take_site_sum(PeerId from, const wire::Gather& gather);

  bool is_mine(const Input& input) const;
  bool is_here(const Input& input, std::uint64_t segment) const;

  /// A segment of the own group, added up.
  class Addition;

  bool lacks_site_sum(std::uint64_t segment) const;
  bool lacks_mean(std::uint64_t segment) const;
  Blob site_sum_of(const Group& group, std::uint64_t segment) const;
  bool may_add_contributions(std::uint64_t segment) const;
  void add_contributions(const std::vector<std::uint64_t>& segments);
  void add_site_sums(std::uint64_t segment);
  void seal_if_ready(std::uint64_t segment);
  void seal_ready();
  void seal_and_offer(std::uint64_t segment);
  void offer_result(std::uint64_t segment);
  void offer_site_sum(std::uint64_t segment);

  Options options_;
  swarm::SharedPlan plan_;
  Layout layout_;  ///< of the present plan

  Fitness fitness_;
  OwnSlots own_;
  KeptContributions kept_;
  std::vector<std::uint32_t> missing_;  ///< by own segment: contributions of the own group that are not here

  std::uint64_t own_set_ = 0;    ///< of the own group
  std::vector<Blob> site_sums_;  ///< of the own group, by segment; empty where it is the mean, or not made
  std::uint64_t site_sum_bytes_ = 0;

  MeanSegments mean_;  ///< of the contributions of the present plan
  EarlyResults early_;

  std::map<PeerId, Outgoing> outgoing_;  ///< every other participant
  std::size_t to_scatter_ = 0;           ///< own pieces in outgoing_
  std::set<PeerId> woken_;
};

}  // namespace tw::average
