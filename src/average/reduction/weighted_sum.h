// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/digest.h"
#include "codec/codec.h"

namespace tw::average {

/// A contribution to one segment: its encoded bytes, and its share of all samples.
struct Addend {
  float weight = 0;
  std::span<const std::byte> encoded;
};

/// Encodes the sum of weight * decoded, added one after the other in the order given and starting from 0,
/// into `encoded` (codec_of_mean). All sizes are those of one segment. Returns the digest of what every peer
/// applies: the decoded sum.
Digest reduce_segment(codec::Codec codec, std::span<const Addend> addends, std::size_t values,
                      std::span<std::byte> encoded);

/// Digest of the decoded values; nothing when one is NaN or infinite.
std::optional<Digest> digest_of_decoded(codec::Codec codec, std::span<const std::byte> encoded,
                                        std::size_t values);

/// L2 norm of the encoded values; the same bits on every machine.
double norm(codec::Codec codec, std::span<const std::byte> encoded);

}  // namespace tw::average
