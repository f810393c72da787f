// SPDX-License-Identifier: Apache-2.0
#include "average/reference.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tw {
namespace {

// The float that comes out at the other end of the wire.
float across_the_wire(Codec codec, float value) {
  if (codec == Codec::fp32 || value == 0) return value;
  const double exact = value;
  if (std::abs(exact) >= 65504.0) return static_cast<float>(std::copysign(65504.0, exact));
  const double unit =
      std::ldexp(1.0, std::max(std::ilogb(exact), -14) - 10);  // between neighbours in binary16
  return static_cast<float>(std::nearbyint(exact / unit) * unit);
}

}  // namespace

std::vector<float> reference_mean(Codec codec, std::span<const WeightedGradient> contributions,
                                  const Geometry& geometry) {
  std::uint64_t total = 0;
  for (const WeightedGradient& c : contributions) {
    TW_CHECK(c.samples > 0 && c.gradient_sum.size() == geometry.length);
    total += c.samples;
  }
  std::vector<float> mean(geometry.length);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    float sum = 0;
    for (const WeightedGradient& c : contributions) {
      const auto scale = static_cast<float>(1.0 / static_cast<double>(c.samples));
      const auto weight = static_cast<float>(static_cast<double>(c.samples) / static_cast<double>(total));
      sum += weight * across_the_wire(codec, c.gradient_sum[i] * scale);
    }
    mean[i] = across_the_wire(codec, sum);
  }
  return mean;
}

}  // namespace tw
