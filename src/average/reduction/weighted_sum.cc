// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/weighted_sum.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace tw::average {
namespace {

// Block length in values: the sum stays in the first-level cache while all addends are added.
constexpr std::size_t kSumBlock = 2048;
static_assert(kSumBlock % codec::kCodecPiece == 0);

}  // namespace

Digest reduce_segment(codec::Codec codec, std::span<const Addend> addends, std::size_t values,
                      std::span<std::byte> encoded) {
  const codec::Codec out = codec_of_mean(codec);
  TW_CHECK(encoded.size() == encoded_bytes(out, values));
  for (const Addend& addend : addends) TW_CHECK(addend.encoded.size() == encoded_bytes(codec, values));
  std::array<float, kSumBlock> block;
  Digester digester;
  for (std::size_t first = 0; first < values; first += kSumBlock) {
    const std::span<float> sum = std::span(block).first(std::min(kSumBlock, values - first));
    std::fill(sum.begin(), sum.end(), 0.0F);
    const std::size_t begin = encoded_bytes(codec, first), bytes = encoded_bytes(codec, sum.size());
    for (const Addend& addend : addends)
      decode_add(codec, addend.encoded.subspan(begin, bytes), addend.weight, sum);
    const auto place = encoded.subspan(encoded_bytes(out, first), encoded_bytes(out, sum.size()));
    encode(out, sum, 1.0F, place);
    decode(out, place, sum);
    digester.add(sum);
  }
  return digester.digest();
}

std::optional<Digest> digest_of_decoded(codec::Codec codec, std::span<const std::byte> encoded,
                                        std::size_t values) {
  TW_CHECK(encoded.size() == encoded_bytes(codec, values));
  std::array<float, kSumBlock> block;
  Digester digester;
  for (std::size_t first = 0; first < values; first += kSumBlock) {
    const std::span<float> decoded = std::span(block).first(std::min(kSumBlock, values - first));
    const auto place = encoded.subspan(encoded_bytes(codec, first), encoded_bytes(codec, decoded.size()));
    if (!decode(codec, place, decoded)) return std::nullopt;
    digester.add(decoded);
  }
  return digester.digest();
}

double norm(codec::Codec codec, std::span<const std::byte> encoded) {
  constexpr std::size_t kLanes = 8;  // an order of addition that can be vectorised
  const std::size_t bytes_of_block = encoded_bytes(codec, kSumBlock);
  std::array<float, kSumBlock> values;
  std::array<double, kLanes> sums{};
  while (!encoded.empty()) {
    const auto block = encoded.first(std::min(encoded.size(), bytes_of_block));
    encoded = encoded.subspan(block.size());
    values.fill(0);
    decode(codec, block, std::span(values).first(values_in(codec, block.size())));
    for (std::size_t i = 0; i < kSumBlock; i += kLanes) {
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

}  // namespace tw::average
