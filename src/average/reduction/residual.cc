// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/residual.h"

#include <algorithm>
#include <array>

#include "average/reduction/residual_kernels.h"
#include "base/check.h"
#include "base/parallel.h"
#include "base/prng.h"

namespace tw::average {
namespace {

constexpr std::size_t kResidualBlock =
    2048;  // values: the working set of a function stays in the first-level cache
static_assert(kResidualBlock % codec::kCodecPiece == 0);

struct Block {
  std::array<float, kResidualBlock> values;
  std::array<float, kResidualBlock> sent;
  std::array<std::byte, kResidualBlock * sizeof(float)> encoded;
};

Encoding from(const Encoding& encoding, std::size_t place) {
  if (!encoding.dither) return encoding;
  return {encoding.codec, encoding.dither->from(place)};
}

bool encode(const Encoding& encoding, std::span<const float> values, float scale, std::span<std::byte> out) {
  TW_CHECK(!encoding.dither || encoding.codec == codec::Codec::int8);
  if (encoding.dither) return encode_int8(values, scale, *encoding.dither, out);
  return codec::encode(encoding.codec, values, scale, out);
}

void lose(const Encoding& encoding, std::span<const float> gradient_sum, const Contributed& contributed,
          std::span<float> residual) {
  Block block;
  const std::size_t count = gradient_sum.size();
  std::span<const float> wanted = gradient_sum;
  if (contributed.carried) {
    const auto values = std::span(block.values).first(count);
    add_values(gradient_sum, residual, values);
    wanted = values;
    std::ranges::fill(residual, 0.0F);
  }
  const auto sent = std::span(block.sent).first(count);
  const auto bytes = std::span(block.encoded).first(encoded_bytes(encoding.codec, count));
  const std::uint64_t of_mean = samples_of_mean(encoding.codec, contributed.samples);
  encode(encoding, wanted, static_cast<float>(1.0 / static_cast<double>(of_mean)), bytes);
  decode(encoding.codec, bytes, sent);
  add_loss(wanted, static_cast<float>(of_mean), sent, residual);
}

}  // namespace

std::uint32_t dither_seed(Round round, PeerId peer, std::uint32_t slot) {
  return static_cast<std::uint32_t>(mix(mix(round, peer.value), slot));
}

Encoding encoding_of(codec::Codec codec, bool stochastic, std::uint32_t seed) {
  if (!stochastic || codec != codec::Codec::int8) return {codec};
  return {codec, codec::Dither{seed, 0}};
}

bool encode_sum(const Encoding& encoding, std::span<const float> gradient_sum,
                std::span<const float> residual, float scale, std::span<std::byte> out) {
  const codec::Codec codec = encoding.codec;
  if (residual.empty()) return encode(encoding, gradient_sum, scale, out);
  TW_CHECK(residual.size() == gradient_sum.size() && out.size() == encoded_bytes(codec, residual.size()));
  std::array<float, kResidualBlock> values;
  bool addable = true;
  for (std::size_t first = 0; first < residual.size(); first += kResidualBlock) {
    const std::size_t count = std::min(kResidualBlock, residual.size() - first);
    const auto both = std::span(values).first(count);
    add_values(gradient_sum.subspan(first, count), residual.subspan(first, count), both);
    const auto block = out.subspan(encoded_bytes(codec, first), encoded_bytes(codec, count));
    addable = encode(from(encoding, first), both, scale, block) && addable;
  }
  return addable;
}

void keep_loss(const Encoding& encoding, const Geometry& geometry, const Contributed& contributed,
               std::span<float> residual, std::size_t threads) {
  TW_CHECK(contributed.samples > 0);
  TW_CHECK(contributed.gradient_sum.size() == geometry.length && residual.size() == geometry.length);
  in_parallel(threads_for(geometry.length, threads), geometry.segments(), [&](std::size_t s) {
    const std::uint64_t end = geometry.first(s) + geometry.size(s);
    for (std::uint64_t first = geometry.first(s); first < end; first += kResidualBlock) {
      const std::size_t count = std::min<std::uint64_t>(kResidualBlock, end - first);
      lose(from(encoding, first), contributed.gradient_sum.subspan(first, count), contributed,
           residual.subspan(first, count));
    }
  });
}

}  // namespace tw::average
