// SPDX-License-Identifier: Apache-2.0
#include "data/sample_order.h"

#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/prng.h"

namespace tw::data {
namespace {

/// Fisher-Yates (Durstenfeld 1964).
void shuffle(std::vector<std::uint32_t>& values, Prng prng) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[prng.below(i)]);
}

}  // namespace

SampleOrder::SampleOrder(std::uint64_t seed, std::uint64_t dataset_size) : seed_(seed), size_(dataset_size) {
  TW_CHECK(size_ > 0 && size_ <= std::numeric_limits<std::uint32_t>::max());
}

std::uint64_t SampleOrder::index_of(std::uint64_t sample) {
  return epoch(sample / size_).permutation[sample % size_];
}

const SampleOrder::Epoch& SampleOrder::epoch(std::uint64_t number) {
  Epoch& kept = kept_[number % kept_.size()];
  if (kept.permutation.empty() || kept.number != number) {
    kept.number = number;
    kept.permutation.resize(size_);
    std::iota(kept.permutation.begin(), kept.permutation.end(), 0U);
    shuffle(kept.permutation, Prng(mix(seed_, number)));
  }
  return kept;
}

}  // namespace tw::data
