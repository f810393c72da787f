// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "codec/codec.h"

namespace tw::average {

/// Division of a vector into the units of transfer. The last segment may be shorter.
struct Geometry {
  std::uint64_t length = 0;              ///< floats
  std::uint64_t segment_length = 65536;  ///< floats; 256 KiB in fp32

  std::uint64_t segments() const { return (length + segment_length - 1) / segment_length; }

  std::uint64_t first(std::uint64_t segment) const { return segment * segment_length; }

  std::uint64_t size(std::uint64_t segment) const {
    TW_CHECK(first(segment) < length);
    const std::uint64_t rest = length - first(segment);
    return rest < segment_length ? rest : segment_length;
  }
};

/// Segment length for a vector of this many floats: a 1024th, so that peers add and return the first segments
/// while the last ones are on their way; 32 to 256 KiB in fp32.
inline std::uint64_t usual_segment_length(std::uint64_t length) {
  return std::clamp<std::uint64_t>(std::bit_floor(length / 1024), 8192, 65536);
}

/// Bytes of all segments, each encoded on its own.
inline std::uint64_t encoded_bytes(codec::Codec codec, const Geometry& geometry) {
  const std::uint64_t whole = geometry.length / geometry.segment_length;
  const std::uint64_t rest = geometry.length % geometry.segment_length;
  return whole * encoded_bytes(codec, geometry.segment_length) + encoded_bytes(codec, rest);
}

}  // namespace tw::average
