// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/time.h"
#include "wire/messages.h"

namespace tw::average {

/// Finds out what lines carry before the first mean crosses them: while the first batch is computed, for a
/// second at most and the four round trips in which streams get going, one peer of each site sends the others
/// messages that mean nothing, as fast as they go. What arrives is measured as ever (bandwidth_meter.h). All
/// do so at once, so that each line is full in both directions, as it is when gradients are averaged. Little
/// more than what a line carries is under way, so that it is soon free for gradients.
///
/// A step machine. Not begun, it has nothing for anybody.
class Probe {
 public:
  /// Bandwidth reports come of what arrives, so something has to.
  static constexpr Duration kNudge = std::chrono::milliseconds(20);

  /// Size of a mean as it crosses the wire, and of one of its segments.
  struct Sizes {
    std::uint64_t vector_bytes = 0;
    std::uint64_t segment_bytes = 0;
  };

  /// The peers that this one probes: of each other site the first member, where it is the first of its own;
  /// of many, 8. Peers without a site are sites of their own.
  static std::vector<PeerId> targets(PeerId self, const std::vector<wire::Member>& members);

  /// No more than 16 vectors are sent.
  void begin(Instant now, const std::vector<PeerId>& targets, Sizes sizes);

  /// Averaging needs the lines, or time is over.
  void end() { targets_.clear(); }

  bool is_under_way() const { return !targets_.empty(); }

  bool is_over(Instant now) const { return now >= until_ || left_ == 0; }

  bool aims_at(PeerId peer) const { return targets_.contains(peer); }

  /// Those that kNudge is over for.
  std::vector<PeerId> to_be_nudged(Instant now) const;

  /// There is more for it, but enough under way: ask again after its next bandwidth report, or kNudge.
  bool holds_back(Instant now, PeerId to) const;

  std::optional<wire::Message> next_bulk(Instant now, PeerId to);

  void on_bandwidth_report(PeerId from, const wire::BandwidthReport& bandwidth_report, Duration round_trip);

 private:
  struct Target {
    std::uint64_t under_way = 0;  ///< bytes
    std::uint64_t at_most = 0;
    Instant nudge_at{};  ///< one message goes then whatever is under way
  };

  std::map<PeerId, Target> targets_;
  Instant began_{};
  Instant until_{};
  std::uint64_t left_ = 0;  ///< bytes
  Blob filling_;
};

}  // namespace tw::average
