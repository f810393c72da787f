// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/time.h"
#include "wire/messages.h"

namespace tw::average {

/// Measures bandwidth before the first mean is sent, while the first batch is computed: for at most a second
/// plus four round trips, in which streams get going. One peer of each site sends the others meaningless
/// messages at full speed. Arrivals are measured as ever (bandwidth_meter.h). All do so at once, so that both
/// directions are full as in averaging. Little more than the bandwidth is under way, so it is soon free for
/// gradients.
///
/// A step machine. Before begin() it sends nothing.
class Probe {
 public:
  /// Bandwidth reports need arrivals, so a message goes at least this often.
  static constexpr Duration kNudge = std::chrono::milliseconds(20);

  /// Size of a mean on the wire, and of one of its segments.
  struct Sizes {
    std::uint64_t vector_bytes = 0;
    std::uint64_t segment_bytes = 0;
  };

  /// The peers that this one probes, if it is the first member of its site: the first members of other sites,
  /// at most 8. Peers without a site are sites of their own.
  static std::vector<PeerId> targets(PeerId self, const std::vector<wire::Member>& members);

  /// At most 16 vectors are sent.
  void begin(Instant now, const std::vector<PeerId>& targets, Sizes sizes);

  /// Averaging needs the bandwidth, or time is over.
  void end() { targets_.clear(); }

  bool is_under_way() const { return !targets_.empty(); }

  bool is_over(Instant now) const { return now >= until_ || left_ == 0; }

  bool aims_at(PeerId peer) const { return targets_.contains(peer); }

  /// Targets whose kNudge is over.
  std::vector<PeerId> to_be_nudged(Instant now) const;

  /// There is more for this peer, but enough is under way: ask again after its next report, or after kNudge.
  bool holds_back(Instant now, PeerId to) const;

  std::optional<wire::Message> next_bulk(Instant now, PeerId to);

  void on_bandwidth_report(PeerId from, const wire::BandwidthReport& bandwidth_report, Duration round_trip);

 private:
  struct Target {
    std::uint64_t under_way = 0;  ///< bytes
    std::uint64_t at_most = 0;
    Instant nudge_at{};  ///< one message goes then, whatever is under way
  };

  std::map<PeerId, Target> targets_;
  Instant began_{};
  Instant until_{};
  std::uint64_t left_ = 0;  ///< bytes
  Blob filling_;
};

}  // namespace tw::average
