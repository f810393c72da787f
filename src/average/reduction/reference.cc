// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/reference.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"

namespace tw::average {
namespace {

using codec::Codec;

/// Distance of neighbours at this magnitude among floats with this many bits after the leading one.
double unit_of(double value, int bits, int least_exponent) {
  return std::ldexp(1.0, std::max(std::ilogb(value), least_exponent) - bits);
}

float rounded(double exact, int bits, int least_exponent, double largest) {
  if (exact == 0) return static_cast<float>(exact);
  if (std::abs(exact) >= largest) return static_cast<float>(std::copysign(largest, exact));
  const double unit = unit_of(exact, bits, least_exponent);
  const double nearest = std::nearbyint(exact / unit) * unit;
  return static_cast<float>(std::copysign(std::min(std::abs(nearest), largest), exact));
}

float as_fp16(float value) { return rounded(value, 10, -14, 65504.0); }

float as_bf16(float value) { return rounded(value, 7, -126, 0x1.fep127); }

void quantise(std::span<float> block, float levels) {
  float largest = 0;
  for (const float value : block) largest = std::max(largest, std::abs(value));
  const float scale = std::min(as_bf16(largest / levels), 0x1p119F);
  const float inverse = scale < 0x1p-100F ? 0.0F : 1.0F / scale;
  for (float& value : block) {
    const float steps = inverse == 0 ? 0.0F : value * inverse;
    value = scale * std::max(-levels, std::min(levels, std::nearbyint(steps)));
    if (value == 0) value = 0;  // there is no integer -0
  }
}

float rounded_up_to_bf16(float value) {
  if (value == 0) return value;
  const double unit = unit_of(value, 7, -126);
  return static_cast<float>(std::ceil(value / unit) * unit);
}

/// In [0, 1): added to the value at this place of the vector before it is rounded down.
float chance(std::uint32_t seed, std::uint64_t place) {
  auto h = static_cast<std::uint32_t>(seed + place * 0x9e3779b9U);
  h ^= h >> 16;
  h *= 0x7feb352dU;
  h ^= h >> 15;
  h *= 0x846ca68bU;
  h ^= h >> 16;
  return static_cast<float>(std::ldexp(static_cast<double>(h / 256), -24));
}

/// Like quantise for int8, but with stochastic rounding.
void quantise_by_chance(std::span<float> block, std::uint32_t seed, std::uint64_t place) {
  float largest = 0;
  for (const float value : block) largest = std::max(largest, std::abs(value));
  const float scale = std::min(rounded_up_to_bf16(largest / 127), 0x1p119F);
  for (float& value : block) {
    const float inverse = scale < 0x1p-100F ? 0.0F : 1.0F / scale;
    const float steps = std::floor(value * inverse + chance(seed, place++));
    value = inverse == 0 ? 0.0F : scale * std::max(-127.0F, std::min(127.0F, steps));
    if (value == 0) value = 0;
  }
}

/// Replaces one segment by what the other end of the wire decodes.
void cross_the_wire(Codec codec, std::span<float> values) {
  const bool blocks = codec == Codec::int8 || codec == Codec::int4;
  const std::size_t in_block = codec == Codec::int8 ? 256 : 64;
  for (std::size_t first = 0; blocks && first < values.size(); first += in_block) {
    const auto block = values.subspan(first, std::min(in_block, values.size() - first));
    quantise(block, codec == Codec::int8 ? 127.0F : 7.0F);
  }
  for (float& value : values) {
    if (codec == Codec::fp16) value = as_fp16(value);
    if (codec == Codec::bf16) value = as_bf16(value);
  }
}

/// A segment of a contribution as decoded by its owner.
std::vector<float> received(Codec codec, const WeightedGradient& c, const Geometry& geometry,
                            std::uint64_t segment) {
  const auto scale = codec == Codec::fp32 ? 1.0F : static_cast<float>(1.0 / static_cast<double>(c.samples));
  std::vector<float> values;
  for (std::uint64_t i = 0; i < geometry.size(segment); ++i)
    values.push_back(c.gradient_sum[geometry.first(segment) + i] * scale);
  const bool by_chance = codec == Codec::int8 && c.dither;
  if (!by_chance) cross_the_wire(codec, values);
  for (std::size_t first = 0; by_chance && first < values.size(); first += 256) {
    const auto block = std::span(values).subspan(first, std::min<std::size_t>(256, values.size() - first));
    quantise_by_chance(block, *c.dither, geometry.first(segment) + first);
  }
  if (!c.negated) return values;
  for (float& value : values) value = -value;
  cross_the_wire(codec, values);
  return values;
}

/// A segment of a mean over some samples, or of their sum, after it crossed the wire.
struct Part {
  std::uint64_t samples = 0;
  std::vector<float> values;
  bool is_sum = false;
};

/// Codec of the mean of parts in this codec.
Codec codec_of_their_mean(Codec codec) { return codec == Codec::int4 ? Codec::int8 : codec; }

Part mean_of(const std::vector<Part>& parts, Codec codec) {
  const Codec out = codec_of_their_mean(codec);
  const bool is_mean = !parts.front().is_sum || parts.front().samples == 1;
  if (parts.size() == 1 && codec == out && is_mean) return {parts.front().samples, parts.front().values};
  Part mean{0, std::vector<float>(parts.front().values.size())};
  for (const Part& part : parts) mean.samples += part.samples;
  for (const Part& part : parts) {
    const double counts = part.is_sum ? 1.0 : static_cast<double>(part.samples);
    const auto weight = static_cast<float>(counts / static_cast<double>(mean.samples));
    for (std::size_t i = 0; i < mean.values.size(); ++i) mean.values[i] += weight * part.values[i];
  }
  cross_the_wire(out, mean.values);
  return mean;
}

}  // namespace

std::vector<float> reference_mean(Codec codec, std::span<const WeightedGradient> contributions,
                                  const Geometry& geometry) {
  if (contributions.empty()) return std::vector<float>(geometry.length);
  std::vector<float> mean;
  for (std::uint64_t s = 0; s < geometry.segments(); ++s) {
    std::map<std::uint32_t, std::vector<Part>> groups;
    for (const WeightedGradient& c : contributions) {
      TW_CHECK(c.samples > 0 && c.gradient_sum.size() == geometry.length);
      groups[c.group].push_back({c.samples, received(codec, c, geometry, s), codec == Codec::fp32});
    }
    std::vector<Part> site_sums;
    for (const auto& [number, parts] : groups) site_sums.push_back(mean_of(parts, codec));
    const Part all = mean_of(site_sums, codec_of_their_mean(codec));
    mean.insert(mean.end(), all.values.begin(), all.values.end());
  }
  return mean;
}

std::vector<float> reference_loss(Codec codec, const WeightedGradient& contribution,
                                  const Geometry& geometry) {
  std::vector<float> loss;
  const auto samples = static_cast<float>(codec == Codec::fp32 ? 1 : contribution.samples);
  for (std::uint64_t s = 0; s < geometry.segments(); ++s) {
    for (const float sent : received(codec, contribution, geometry, s))
      loss.push_back(contribution.gradient_sum[loss.size()] - samples * sent);
  }
  return loss;
}

}  // namespace tw::average
