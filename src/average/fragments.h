// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "average/reduction/geometry.h"
#include "base/ids.h"

namespace tw::average {

/// Consecutive values of the vector, averaged in one round.
struct Fragment {
  std::uint64_t first = 0;  ///< place of its first value in the vector
  Geometry geometry{};      ///< its length, and how it is cut into segments
};

/// The vector as rounds average it: round n averages fragment n mod F, so each value is averaged in every
/// F-th round, and a round sends an F-th of the vector. F = 1: every round averages all of it. All peers of a
/// run cut it alike, since tensors and F are facts of the run. A value.
class Fragments {
 public:
  /// All of it in each round.
  Fragments(const Geometry& whole) : all_{{0, whole}} {}  // NOLINT(google-explicit-constructor)

  /// `number` fragments of about equal length. They end between tensors where a tensor ends within an eighth
  /// of a fragment's length. A vector of fewer values has as many fragments as values. segment_length:
  /// floats; 0: as is usual.
  Fragments(const std::vector<std::uint64_t>& tensor_sizes, std::uint64_t number,
            std::uint64_t segment_length = 0);

  const Fragment& of(Round round) const { return all_[round % all_.size()]; }

  const std::vector<Fragment>& all() const { return all_; }

  /// Floats of the whole vector.
  std::uint64_t length() const { return all_.back().first + all_.back().geometry.length; }

  /// The geometry with most values: a limit for any round.
  const Geometry& largest() const;

 private:
  std::vector<Fragment> all_;  // in the order of their places
};

}  // namespace tw::average
