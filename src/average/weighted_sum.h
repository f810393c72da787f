// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "codec/codec.h"

namespace tw {

/// A contribution to one segment: what crossed the wire, and its share of all samples.
struct Addend {
  float weight = 0;
  std::span<const std::byte> encoded;
};

/// Encodes the sum of weight * decoded, added one after the other in the order given and starting from 0,
/// into `encoded` (codec_of_mean), and decodes that into `mean`: what every peer applies. All sizes are those
/// of one segment.
void reduce_segment(Codec codec, std::span<const Addend> addends, std::span<std::byte> encoded,
                    std::span<float> mean);

/// L2 norm of what is encoded; the same bits on every machine.
double norm(Codec codec, std::span<const std::byte> encoded);

}  // namespace tw
