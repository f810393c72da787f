// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "average/reduction/fitness.h"
#include "average/reduction/geometry.h"
#include "average/reduction/gradient_sum.h"
#include "average/reduction/residual.h"
#include "base/blob.h"
#include "wire/limits.h"

namespace tw::average {

/// This peer's own contributions to a step, by slot. A segment is encoded each time it is wanted, with the
/// same bits, and judged the first time.
class OwnSlots {
 public:
  OwnSlots(PeerId self, const Geometry& geometry) : self_(self), geometry_(geometry) {}

  /// Once for each slot; see Reduction::contribute.
  void put(std::uint32_t slot, GradientSum gradient_sum, std::uint64_t samples,
           std::span<const float> residual, const Encoding& encoding);

  /// The sum in this slot is over so many samples.
  bool has(std::uint32_t slot, std::uint64_t samples) const;

  /// A segment as it crosses the wire, before it is judged.
  struct Piece {
    Blob encoded;
    bool addable = false;
    double squares = 0;  ///< Fitness::squares_of; 0 if it was judged before
  };

  /// Several threads may encode at once. Requires that the slot was put.
  Piece encode(std::uint32_t slot, std::uint64_t segment, const Fitness& fitness) const;

  /// Judges it; false if the slot is unfit.
  bool admit(std::uint32_t slot, std::uint64_t segment, const Piece& piece, Fitness& fitness);

 private:
  struct Slot {
    GradientSum gradient_sum;
    std::span<const float> residual;  ///< empty: none
    std::uint64_t samples = 0;
    Encoding encoding{};
    bool is_unfit = false;       ///< from the segments judged so far
    double squares = 0;          ///< of the segments that were judged
    std::vector<bool> judged{};  ///< by segment
  };

  PeerId self_;
  Geometry geometry_;
  std::array<std::optional<Slot>, wire::kMostSlots> slots_;
};

}  // namespace tw::average
