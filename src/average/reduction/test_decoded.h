// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "average/reduction/geometry.h"
#include "base/blob.h"
#include "base/check.h"
#include "codec/codec.h"

namespace tw::average {

/// Decodes a vector from its encoded segments.
inline std::vector<float> decoded(codec::Codec codec, const Geometry& geometry,
                                  const std::vector<Blob>& segments) {
  std::vector<float> values(geometry.length);
  for (std::uint64_t s = 0; s < geometry.segments(); ++s) {
    const auto part = std::span(values).subspan(geometry.first(s), geometry.size(s));
    TW_CHECK(decode(codec, segments[s].bytes(), part));
  }
  return values;
}

}  // namespace tw::average
