// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tw::data {

/// Which sample of the data set is number s of the run, counted over all rounds and epochs. Each epoch is one
/// permutation of the data set, derived from (seed, epoch) alone: the same on every machine. Not thread-safe.
class SampleOrder {
 public:
  /// dataset_size in [1, 2^32 - 1].
  SampleOrder(std::uint64_t seed, std::uint64_t dataset_size);

  /// In [0, dataset_size). Making an epoch's permutation takes O(dataset_size); the last two in use are kept,
  /// since the spans of a round may lie on both sides of an epoch's end.
  std::uint64_t index_of(std::uint64_t sample);

 private:
  struct Epoch {
    std::uint64_t number = 0;
    std::vector<std::uint32_t> permutation;  // empty: not made yet
  };

  const Epoch& epoch(std::uint64_t number);

  std::uint64_t seed_;
  std::uint64_t size_;
  std::array<Epoch, 2> kept_;  // an epoch lies at its number mod 2
};

}  // namespace tw::data
