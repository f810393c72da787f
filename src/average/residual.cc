// SPDX-License-Identifier: Apache-2.0
#include "average/residual.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace tw {
namespace {

constexpr std::size_t kBlock = 2048;  // values: what a function works on stays in the first-level cache
static_assert(kBlock % kCodecPiece == 0);

struct Block {
  std::array<float, kBlock> values;
  std::array<float, kBlock> sent;
  std::array<std::byte, kBlock * sizeof(float)> encoded;
};

void lose(Codec codec, std::span<const float> gradient_sum, const Contributed& contributed,
          std::span<float> residual) {
  Block block;
  const std::size_t count = gradient_sum.size();
  const auto values = std::span(block.values).first(count), sent = std::span(block.sent).first(count);
  std::copy(gradient_sum.begin(), gradient_sum.end(), values.begin());
  if (contributed.carried) {
    for (std::size_t i = 0; i < count; ++i) values[i] += residual[i];
    std::fill(residual.begin(), residual.end(), 0.0F);
  }
  const auto bytes = std::span(block.encoded).first(encoded_bytes(codec, count));
  encode(codec, values, static_cast<float>(1.0 / static_cast<double>(contributed.samples)), bytes);
  decode(codec, bytes, sent);
  const auto samples = static_cast<float>(contributed.samples);
  for (std::size_t i = 0; i < count; ++i) residual[i] += values[i] - samples * sent[i];
}

}  // namespace

bool encode_sum(Codec codec, std::span<const float> gradient_sum, std::span<const float> residual,
                float scale, std::span<std::byte> out) {
  if (residual.empty()) return encode(codec, gradient_sum, scale, out);
  TW_CHECK(residual.size() == gradient_sum.size() && out.size() == encoded_bytes(codec, residual.size()));
  std::array<float, kBlock> values;
  bool addable = true;
  for (std::size_t first = 0; first < residual.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, residual.size() - first);
    for (std::size_t i = 0; i < count; ++i) values[i] = gradient_sum[first + i] + residual[first + i];
    const auto block = out.subspan(encoded_bytes(codec, first), encoded_bytes(codec, count));
    addable = encode(codec, std::span(values).first(count), scale, block) && addable;
  }
  return addable;
}

void keep_loss(Codec codec, const Geometry& geometry, const Contributed& contributed,
               std::span<float> residual) {
  TW_CHECK(contributed.gradient_sum.size() == geometry.length && residual.size() == geometry.length);
  for (std::uint64_t s = 0; s < geometry.segments(); ++s) {
    const std::uint64_t end = geometry.first(s) + geometry.size(s);
    for (std::uint64_t first = geometry.first(s); first < end; first += kBlock) {
      const std::size_t count = std::min<std::uint64_t>(kBlock, end - first);
      lose(codec, contributed.gradient_sum.subspan(first, count), contributed,
           residual.subspan(first, count));
    }
  }
}

}  // namespace tw
