// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "base/ids.h"

namespace tw::average {

/// Encoded contributions that arrived, by (peer, slot, segment). They are kept for the whole round, across
/// plans.
class KeptContributions {
 public:
  explicit KeptContributions(std::uint64_t segments) : segments_(segments) {}

  /// Empty if it is not here.
  Blob find(PeerId peer, std::uint32_t slot, std::uint64_t segment) const;

  bool has(PeerId peer, std::uint32_t slot, std::uint64_t segment) const;

  /// squares: sum of the squares of its values, if needed.
  void put(PeerId peer, std::uint32_t slot, std::uint64_t segment, Blob piece, double squares = 0);

  /// Sum of the squares over all that is kept of this contribution.
  double squares(PeerId peer, std::uint32_t slot) const;

  void drop(PeerId peer);

  /// Bytes kept from this peer, and the places laid out for them: slot_bytes() for each of its slots.
  std::uint64_t bytes(PeerId peer) const;

  /// The same over all peers.
  std::uint64_t held_bytes() const { return held_bytes_; }

  static std::uint64_t slot_bytes(std::uint64_t segments) { return segments * sizeof(Blob); }

 private:
  struct Slot {
    std::vector<Blob> pieces;  ///< by segment
    double squares = 0;
  };

  std::uint64_t segments_;
  std::map<std::pair<PeerId, std::uint32_t>, Slot> slots_;
  std::map<PeerId, std::uint64_t> bytes_;
  std::uint64_t held_bytes_ = 0;
};

/// Segments of the mean that arrived: of each sender one each, of the latest set that it sent. A sender whose
/// set changes sends everything anew, so nothing older is needed. A plan that comes later, or returns to that
/// set, finds them here.
class ReceivedResults {
 public:
  /// Order of a sender's plans; the greater one is later.
  using PlanOrder = std::pair<Ballot, std::uint32_t>;

  /// The plan and set that a sender's segments belong to.
  struct Origin {
    PlanOrder plan;
    std::uint64_t set = 0;
  };

  struct Latest {
    PlanOrder plan;  ///< the latest plan that came with a segment of the set
    std::uint64_t set = 0;
    std::vector<Blob> segments;  ///< empty where nothing came
    std::uint64_t bytes = 0;     ///< of what came, and of the places for the rest
  };

  explicit ReceivedResults(std::uint64_t segments) : segments_(segments) {}

  /// False when the sender sent this segment of this set already. Segments of an older set are dropped, since
  /// messages overtake each other.
  bool put(PeerId from, const Origin& origin, std::uint64_t segment, Blob result);

  void drop(PeerId sender);

  const std::map<PeerId, Latest>& by_sender() const { return latest_; }

  std::uint64_t held_bytes() const { return held_bytes_; }

 private:
  std::uint64_t segments_;
  std::map<PeerId, Latest> latest_;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace tw::average
