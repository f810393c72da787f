// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "average/reduction/geometry.h"
#include "base/ids.h"
#include "codec/codec.h"

namespace tw::average {

/// Error feedback (Seide et al. 2014; Karimireddy et al. 2019): a contributor keeps what rounding took from
/// its contributions, its residual, and adds it to a later one. All of it is in the unit of gradient sums.

/// Encoding of a contribution on the wire.
struct Encoding {
  codec::Codec codec = codec::Codec::fp32;
  std::optional<codec::Dither> dither{};  ///< only int8, for stochastic rounding; by places in the vector
};

/// Seed of the stochastic rounding of a contribution's values.
std::uint32_t dither_seed(Round round, PeerId peer, std::uint32_t slot);

/// The encoding of one contribution; only int8 can be stochastic.
Encoding encoding_of(codec::Codec codec, bool stochastic, std::uint32_t seed);

/// Divisor of a contribution's sum on the wire: its samples, or 1 if the codec carries sums.
constexpr std::uint64_t samples_of_mean(codec::Codec codec, std::uint64_t samples) {
  return carries_sums(codec) ? 1 : samples;
}

/// Encodes scale * (gradient_sum + residual), each operation rounded; an empty residual is none. Sizes and
/// result as for encode of one segment.
bool encode_sum(const Encoding& encoding, std::span<const float> gradient_sum,
                std::span<const float> residual, float scale, std::span<std::byte> out);

/// A contribution as others received it.
struct Contributed {
  std::span<const float> gradient_sum;
  std::uint64_t samples = 0;
  bool carried = false;  ///< the residual was added to it
};

/// Updates the residual after a contribution of a committed round: the residual (unless the contribution
/// carried it) + what was to be sent - samples * what was sent (a mean over these; a sum as it is), each
/// operation rounded. The contribution that carried it comes first. The bits do not depend on the threads.
void keep_loss(const Encoding& encoding, const Geometry& geometry, const Contributed& contributed,
               std::span<float> residual, std::size_t threads = 1);

}  // namespace tw::average
