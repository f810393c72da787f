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

/// How a contribution crosses the wire.
struct Encoding {
  codec::Codec codec = codec::Codec::fp32;
  std::optional<codec::Dither>
      dither{};  ///< int8 alone, then rounded stochastically; by places in the vector
};

/// What decides by what chance the values of a contribution are rounded.
std::uint32_t dither_seed(Round round, PeerId peer, std::uint32_t slot);

/// That of one contribution; only int8 can be stochastic.
Encoding encoding_of(codec::Codec codec, bool stochastic, std::uint32_t seed);

/// Over how many samples a contribution of so many is a mean on the wire.
constexpr std::uint64_t samples_of_mean(codec::Codec codec, std::uint64_t samples) {
  return carries_sums(codec) ? 1 : samples;
}

/// Encodes scale * (gradient_sum + residual), each operation rounded; an empty residual is none. Sizes as for
/// encode of one segment, and what it returns.
bool encode_sum(const Encoding& encoding, std::span<const float> gradient_sum,
                std::span<const float> residual, float scale, std::span<std::byte> out);

/// A contribution as others received it.
struct Contributed {
  std::span<const float> gradient_sum;
  std::uint64_t samples = 0;
  bool carried = false;  ///< the residual was added to it
};

/// Brings the residual up to date with a contribution that counts in a committed round: the residual (not
/// where the contribution carried it) + what was to be sent - samples * what was sent (a mean over these;
/// a sum as it is), each operation rounded. The contribution that carried it comes first.
void keep_loss(const Encoding& encoding, const Geometry& geometry, const Contributed& contributed,
               std::span<float> residual);

}  // namespace tw::average
