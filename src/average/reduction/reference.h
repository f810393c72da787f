// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "average/reduction/geometry.h"
#include "codec/codec.h"

namespace tw::average {

struct WeightedGradient {
  std::uint64_t samples = 0;
  std::span<const float> gradient_sum;    ///< over these samples
  std::uint32_t group = 0;                ///< Contribution::group
  std::optional<std::uint32_t> dither{};  ///< the seed, where int8 is rounded stochastically
  bool negated = false;  ///< the decoded contribution is sent with the other sign, encoded again
};

/// The decoded mean that a round over these contributions, in this order, must apply, bit for bit: the mean
/// of each group is encoded and decoded, and then that of the groups (average/reduction/reduction.h). Written
/// for checkers: one value at a time, sharing no code with codec/ or Reduction. Contributions must be finite.
std::vector<float> reference_mean(codec::Codec codec, std::span<const WeightedGradient> contributions,
                                  const Geometry& geometry);

/// Residual of the contributor after this contribution, in the unit of its sum, with error feedback
/// (average/reduction/residual.h). gradient_sum: with the residual that it carries.
std::vector<float> reference_loss(codec::Codec codec, const WeightedGradient& contribution,
                                  const Geometry& geometry);

}  // namespace tw::average
