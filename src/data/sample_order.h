// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::data {

/// A pseudo-random permutation of [0, size), in O(1) memory: a Feistel network (Luby, Rackoff 1988) over the
/// least even number of bits that holds size. It is walked along its cycle until the value is below size
/// (Black, Rogaway 2002): at most 4 steps on average. The same on every machine. For order, not for secrets.
/// Immutable.
class Permutation {
 public:
  /// size in [1, 2^62].
  Permutation(std::uint64_t key, std::uint64_t size);

  /// i in [0, size).
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  std::uint64_t scramble(std::uint64_t value) const;

  std::uint64_t key_;
  std::uint64_t size_;
  int half_bits_;
};

/// Maps sample s of the run, counted over all rounds and epochs, to a sample of the data set. Each epoch is
/// one permutation of the data set, derived only from (seed, epoch): the same on every machine, and computed
/// without earlier epochs. Immutable.
class SampleOrder {
 public:
  static constexpr std::uint64_t kLargest = std::uint64_t{1} << 62;

  /// dataset_size in [1, kLargest]. An epoch permutes blocks of this many consecutive samples; the incomplete
  /// block comes last. begun, at most kLargest: where sample 0 of the run stands in the order of all epochs,
  /// for a run that goes on from another one.
  SampleOrder(std::uint64_t seed, std::uint64_t dataset_size, std::uint64_t block = 1,
              std::uint64_t begun = 0);

  bool operator==(const SampleOrder&) const = default;

  /// In [0, dataset_size); O(1) time and memory.
  std::uint64_t index_of(std::uint64_t sample) const;

  /// Counted from 0.
  std::uint64_t epoch_of(std::uint64_t sample) const { return (begun_ + sample) / size_; }

  std::uint64_t seed() const { return seed_; }

  std::uint64_t dataset_size() const { return size_; }

  std::uint64_t block() const { return block_; }

  std::uint64_t begun() const { return begun_; }

 private:
  std::uint64_t seed_;
  std::uint64_t size_;
  std::uint64_t block_;
  std::uint64_t begun_;
};

}  // namespace tw::data
