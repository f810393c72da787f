// SPDX-License-Identifier: Apache-2.0
#include "data/sample_order.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/prng.h"

namespace tw::data {
namespace {

/// Four rounds make a strong permutation of large halves. Halves of few bits need more until every order of a
/// small data set is about equally likely (sample_order_test.cc).
constexpr int kFeistelRounds = 8;

}  // namespace

Permutation::Permutation(std::uint64_t key, std::uint64_t size)
    : key_(key), size_(size), half_bits_(std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2)) {
  TW_CHECK(size_ > 0 && size_ <= SampleOrder::kLargest);
}

std::uint64_t Permutation::scramble(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < kFeistelRounds; ++round) {
    const std::uint64_t mixed = mix(mix(key_, round), right) & mask;
    const std::uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  TW_CHECK(i < size_);
  std::uint64_t value = scramble(i);
  while (value >= size_) value = scramble(value);
  return value;
}

SampleOrder::SampleOrder(std::uint64_t seed, std::uint64_t dataset_size, std::uint64_t block,
                         std::uint64_t begun)
    : seed_(seed), size_(dataset_size), block_(block), begun_(begun) {
  TW_CHECK(size_ > 0 && size_ <= kLargest && block_ > 0 && begun_ <= kLargest);
}

std::uint64_t SampleOrder::index_of(std::uint64_t sample) const {
  const std::uint64_t place = (begun_ + sample) % size_, blocks = size_ / block_;
  if (place / block_ >= blocks) return place;
  const Permutation order(mix(seed_, epoch_of(sample)), blocks);
  return order(place / block_) * block_ + place % block_;
}

}  // namespace tw::data
