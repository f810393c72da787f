// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "average/reduction/geometry.h"
#include "base/check.h"
#include "base/digest.h"

namespace tw::average {

/// Digest of a decoded mean: the digest of the digests of its segments. A segment's digest can be taken while
/// it is in the cache and other segments are still on their way.
inline Digest digest_of_segments(std::span<const Digest> segments) {
  return digest_of(std::as_bytes(segments));
}

inline Digest digest_of_mean(std::span<const float> mean, const Geometry& geometry) {
  TW_CHECK(mean.size() == geometry.length);
  std::vector<Digest> segments;
  for (std::uint64_t s = 0; s < geometry.segments(); ++s) {
    segments.push_back(digest_of(mean.subspan(geometry.first(s), geometry.size(s))));
  }
  return digest_of_segments(segments);
}

}  // namespace tw::average
