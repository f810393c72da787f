// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "average/bandwidth/bandwidth_meter.h"
#include "average/bandwidth/probe.h"
#include "average/custody.h"
#include "average/fragments.h"
#include "average/reduction/reduction.h"
#include "base/ids.h"
#include "base/rarely.h"
#include "wire/messages.h"

namespace tw::average {

/// One peer's side of all averaging: a Reduction for each step under way, bulk messages that come before
/// their step is open, the bandwidth of this peer, and peers that hold a step up. A step machine; it knows
/// neither clock nor socket. Loop thread only.
///
/// Memory, whatever remotes send: the Reductions, and kEarlyVectors encoded vectors per sender.
class Averager {
 public:
  struct Options {
    PeerId self;
    Fragments fragments;
    codec::Codec codec = codec::Codec::fp32;
    bool stochastic = false;       ///< Reduction::Options
    double norm_cap = 0;           ///< Reduction::Options
    std::uint64_t probe_from = 0;  ///< bandwidth is probed if encoded means have at least this many bytes
    std::size_t threads = 1;       ///< Reduction::Options, for a vector that is worth them
    Rarely rarely{};
  };

  /// Limit for bulk messages of the next round that come before its record: this many encoded vectors per
  /// sender, cut into whole segments, are kept.
  static constexpr std::uint64_t kEarlyVectors = 2;
  /// Memory of one such message beside its payload.
  static constexpr std::uint64_t kEarlyOverhead = sizeof(std::pair<PeerId, wire::Message>);

  /// A bulk message that was not taken.
  struct Refused {
    PeerId from;
    bool nonsense = false;  ///< its sender averages another vector: its link is useless
    std::string why;
  };

  explicit Averager(Options options) : options_(std::move(options)), custody_(options_.fragments) {}

  // ---- steps

  /// Averaging of this step may begin; steps of other rounds are over. Takes the messages that came early and
  /// returns those that were refused.
  std::vector<Refused> open(Instant now, StepId step);

  /// Drops all steps and all messages that came early.
  void abandon();

  bool is_open(StepId step) const { return steps_.contains(step); }

  /// worked_since: since when this peer works for the step. False unless the plan is a newer one of an open
  /// step (Reduction::adopt).
  bool adopt(Instant now, const swarm::SharedPlan& plan, Instant worked_since);

  /// The plan of this step; null before there is one.
  const wire::Plan* plan(StepId step) const;

  /// When the first plan of the step came; kNever before that.
  Instant called_at(StepId step) const;

  /// Own contributions of the plan that were not handed in.
  std::vector<wire::Contribution> due(StepId step) const;

  /// Hands one of them in; residual: Reduction::contribute. Values stay valid and unchanged until the step is
  /// over.
  void contribute(StepId step, const wire::Contribution& due, const GradientSum& gradient_sum,
                  std::span<const float> residual);

  /// Peers whose values can enter no mean. This peer itself counts in ballots_beyond_cap().
  std::vector<Unfit> take_unfit(StepId step);

  /// Ballots of the step whose plans counted on an own contribution beyond the norm cap.
  std::size_t ballots_beyond_cap(StepId step) const;

  /// News since the last call.
  struct News {
    bool scattered = false;      ///< once for each step: Reduction::scattered()
    bool gathered = false;       ///< once for each step: the mean is whole
    std::optional<Digest> mean;  ///< of the whole mean, once for each plan
  };

  News take_news(StepId step);

  bool complete(StepId step) const;

  /// The mean of a complete step, which is over now. own: the contributions that were made here.
  struct Mean {
    std::vector<Blob> segments;
    std::vector<wire::Contribution> own;
  };

  Mean finish(StepId step, const std::vector<wire::Contribution>& contributions);

  /// Sums that change hands before the round is averaged; opened, closed and sent with the rest.
  Custody& custody() { return custody_; }

  // ---- who holds it up

  std::vector<Reduction::Debt> debts(StepId step) const;

  struct Objection {
    PeerId suspect;
    wire::StallCause why{};
    RangeSet missing{};       ///< for a slow peer: missing segments of its share
    bool send_again = false;  ///< ask it to send its part again: it may believe that all of it arrived
  };

  using RoundTrips = std::function<Duration(PeerId)>;

  /// Call it with every tick: peers from which nothing comes, and peers too slow for the plan.
  std::vector<Objection> objections(Instant now, StepId step, const RoundTrips& round_trip);

  // ---- messages

  /// A Scatter or a Gather.
  std::optional<Refused> on_bulk(Instant now, PeerId from, const wire::Message& message);

  /// Bulk without meaning, as of a probe.
  void on_padding(Instant now, PeerId from) { last_bulk_[from] = now; }

  /// Any bulk message of this size; returns what to report to its sender.
  std::optional<wire::BandwidthReport> on_bytes(Instant now, PeerId from, std::uint64_t bytes, bool asked) {
    return meter_.arrived(now, from, bytes, asked);
  }

  /// True when there may be more to send to it.
  bool on_bandwidth_report(Instant now, PeerId from, const wire::BandwidthReport& bandwidth_report,
                           Duration round_trip);

  void on_new_link(PeerId peer);

  /// member: of the last record. Drops what other peers sent: they send it again on a new link.
  void on_close(PeerId peer, bool member);

  // ---- bandwidth

  /// The next segment for this peer. It ends the probe.
  std::optional<wire::Message> next_segment(PeerId to);

  /// Probe bytes for this peer, if there is nothing else to send to it.
  std::optional<wire::Message> next_padding(Instant now, PeerId to);

  /// A bulk message for this peer is on its way.
  void handed(Instant now, PeerId to) { meter_.handed(now, to); }

  /// Until then segments go before all other bulk; in the past when nothing is averaged.
  Instant has_lines_until() const;

  /// Probes bandwidth to some of these members, in the first round and if vectors are long. Returns them.
  std::vector<PeerId> begin_probe(Instant now, const std::vector<wire::Member>& members);

  /// Discards what the probe found.
  void stop_probe() { probe_.end(); }

  /// Call it with every tick. Returns peers for which there is padding.
  std::vector<PeerId> step(Instant now);

  Instant next_step(Instant now) const { return probe_.is_under_way() ? now + Probe::kNudge : kNever; }

  /// The result of a probe that ended since the last call.
  std::optional<wire::Bandwidth> take_probed();

  /// Bandwidth of this peer.
  wire::Bandwidth bandwidth() const { return meter_.bandwidth(); }

  /// Peers for which next_segment has something since the last call.
  std::vector<PeerId> take_wakeups();

  /// Bytes that are held for others.
  std::uint64_t held_bytes() const;

 private:
  struct Step {
    explicit Step(const Reduction::Options& options) : reduction(options) {}

    Reduction reduction;
    std::set<std::uint32_t> contributed{};  ///< slots
    std::set<Ballot> beyond_cap{};
    Instant called_at = kNever;
    Instant planned_at = kNever;
    Instant lines_until{};
    std::map<PeerId, Instant>
        owes_since{};  ///< the first plan under which it owes, or when it was asked again
    bool told_scattered = false;
    bool told_gathered = false;
    std::pair<Ballot, std::uint32_t> told_mean{};  ///< of this plan
  };

  const Step* find(StepId step) const;
  Step* find(StepId step);
  void keep_early(Instant now, PeerId from, const wire::Message& message);
  void add_stalls(Instant now, Step& step, const RoundTrips& round_trip, std::vector<Objection>& to);
  void add_slow(Instant now, const Step& step, std::vector<Objection>& to);
  void end_probe();

  Options options_;
  std::map<StepId, Step> steps_;
  Round newest_ = 0;                                     ///< round that was opened last; 0: none
  std::vector<std::pair<PeerId, wire::Message>> early_;  ///< of the round after that
  std::map<PeerId, std::uint64_t> early_bytes_;
  std::map<PeerId, Instant> last_bulk_;
  std::map<PeerId, Instant> reported_;
  Instant slowness_told_at_{};
  BandwidthMeter meter_;
  Probe probe_;
  Custody custody_;
  bool may_probe_ = true;
  std::optional<wire::Bandwidth> probed_;
};

}  // namespace tw::average
