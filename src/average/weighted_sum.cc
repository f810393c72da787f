// SPDX-License-Identifier: Apache-2.0
#include "average/weighted_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tw {
namespace {

// Floats; two such blocks stay in the first-level cache while all addends pass.
constexpr std::size_t kBlock = 2048;

// A product and a sum, each rounded: the folder is compiled without contraction to fused multiply-add.
void add(float* __restrict sum, const float* __restrict values, std::size_t count, float weight) {
  constexpr std::size_t kStep = 32;  // inner loops of a fixed length are vectorised at -O2 too
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (std::size_t k = 0; k < kStep; ++k) sum[i + k] += weight * values[i + k];
  }
  for (; i < count; ++i) sum[i] += weight * values[i];
}

bool is_addable_fp32(std::span<const std::byte> encoded) {
  constexpr std::size_t kStep = 32;
  constexpr std::uint32_t kTooLarge = 0x7f000000;  // 2^127
  std::array<std::uint32_t, kStep> values;
  std::array<std::uint32_t, kStep> bad{};
  while (!encoded.empty()) {
    const std::size_t bytes = std::min(encoded.size(), sizeof values);
    if (bytes < sizeof values) values.fill(0);
    std::memcpy(values.data(), encoded.data(), bytes);
    for (std::size_t k = 0; k < kStep; ++k) bad[k] |= (values[k] & 0x7fffffff) >= kTooLarge ? 1 : 0;
    encoded = encoded.subspan(bytes);
  }
  return std::all_of(bad.begin(), bad.end(), [](std::uint32_t lane) { return lane == 0; });
}

bool is_addable_fp16(std::span<const std::byte> encoded) {
  std::array<float, kBlock> values;
  for (std::size_t first = 0; first < encoded.size(); first += 2 * kBlock) {
    const auto block = encoded.subspan(first, std::min(2 * kBlock, encoded.size() - first));
    if (!decode(Codec::fp16, block, std::span(values).first(block.size() / 2))) return false;
  }
  return true;
}

}  // namespace

void reduce_segment(Codec codec, std::span<const Addend> addends, std::span<std::byte> encoded,
                    std::span<float> mean) {
  std::array<float, kBlock> values;
  for (std::size_t first = 0; first < mean.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, mean.size() - first);
    const std::size_t begin = encoded_bytes(codec, first);
    const std::size_t bytes = encoded_bytes(codec, count);
    const std::span<float> sum = mean.subspan(first, count);
    std::fill(sum.begin(), sum.end(), 0.0F);
    for (const Addend& addend : addends) {
      decode(codec, addend.encoded.subspan(begin, bytes), std::span(values).first(count));
      add(sum.data(), values.data(), count, addend.weight);
    }
    encode(codec, sum, 1.0F, encoded.subspan(begin, bytes));
    decode(codec, encoded.subspan(begin, bytes), sum);
  }
}

bool is_addable(Codec codec, std::span<const std::byte> encoded) {
  return codec == Codec::fp32 ? is_addable_fp32(encoded) : is_addable_fp16(encoded);
}

double norm(Codec codec, std::span<const std::byte> encoded) {
  constexpr std::size_t kLanes = 8;  // an order of addition that can be vectorised
  const std::size_t bytes_of_block = encoded_bytes(codec, kBlock);
  std::array<float, kBlock> values;
  std::array<double, kLanes> sums{};
  while (!encoded.empty()) {
    const auto block = encoded.first(std::min(encoded.size(), bytes_of_block));
    encoded = encoded.subspan(block.size());
    values.fill(0);
    decode(codec, block, std::span(values).first(block.size() * kBlock / bytes_of_block));
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) {
        const double value = values[i + k];
        sums[k] += value * value;
      }
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return std::sqrt(sum);
}

}  // namespace tw
