// SPDX-License-Identifier: Apache-2.0
#include "average/fragments.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tw::average {
namespace {

constexpr std::uint64_t kFarthest = 8;  ///< part of a fragment

/// The end of a tensor that is nearest to this place, if it is near enough; else the place.
std::uint64_t cut_near(const std::vector<std::uint64_t>& ends, std::uint64_t place, std::uint64_t near) {
  const auto after = std::ranges::lower_bound(ends, place);
  std::uint64_t best = place, distance = near;
  const auto consider = [&](std::uint64_t end) {
    const std::uint64_t apart = end > place ? end - place : place - end;
    if (apart <= distance) best = end, distance = apart;
  };
  if (after != ends.begin()) consider(*(after - 1));
  if (after != ends.end()) consider(*after);
  return best;
}

}  // namespace

Fragments::Fragments(const std::vector<std::uint64_t>& tensor_sizes, std::uint64_t number,
                     std::uint64_t segment_length) {
  std::vector<std::uint64_t> ends(tensor_sizes.size());
  std::partial_sum(tensor_sizes.begin(), tensor_sizes.end(), ends.begin());
  TW_CHECK(!ends.empty() && ends.back() > 0 && number > 0);
  const std::uint64_t length = ends.back();
  number = std::min(number, length);
  const std::uint64_t even = length / number, rest = length % number;
  std::uint64_t first = 0;
  for (std::uint64_t i = 1; i <= number; ++i) {
    const std::uint64_t place = i * even + std::min(i, rest);
    const std::uint64_t end = i == number ? length : cut_near(ends, place, even / kFarthest);
    const std::uint64_t size = end - first;
    all_.push_back({first, {size, segment_length != 0 ? segment_length : usual_segment_length(size)}});
    first = end;
  }
}

const Geometry& Fragments::largest() const {
  return std::ranges::max_element(all_, {}, [](const Fragment& one) { return one.geometry.length; })
      ->geometry;
}

}  // namespace tw::average
