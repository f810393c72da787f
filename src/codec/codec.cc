// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "codec/fp16.h"

namespace tw {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

// Inner loops of a fixed length are vectorised at -O2 too.
constexpr std::size_t kBlock = 32;

void encode_fp32(std::span<const float> values, float scale, std::byte* out) {
  if (scale == 1.0F) {
    if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
    return;
  }
  std::array<float, kBlock> block;
  std::size_t i = 0;
  for (; i + kBlock <= values.size(); i += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) block[k] = values[i + k] * scale;
    std::memcpy(out + 4 * i, block.data(), sizeof block);
  }
  for (; i < values.size(); ++i) {
    const float value = values[i] * scale;
    std::memcpy(out + 4 * i, &value, sizeof value);
  }
}

std::uint32_t not_finite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7f800000) == 0x7f800000 ? 1 : 0;
}

bool decode_fp32(const std::byte* in, std::span<float> values) {
  std::array<float, kBlock> block;
  std::array<std::uint32_t, kBlock> bad{};
  std::size_t i = 0;
  for (; i + kBlock <= values.size(); i += kBlock) {
    std::memcpy(block.data(), in + 4 * i, sizeof block);
    for (std::size_t k = 0; k < kBlock; ++k) bad[k] |= not_finite(block[k]);
    std::memcpy(&values[i], block.data(), sizeof block);
  }
  std::uint32_t any = 0;
  for (; i < values.size(); ++i) {
    std::memcpy(&values[i], in + 4 * i, sizeof values[i]);
    any |= not_finite(values[i]);
  }
  for (const std::uint32_t lane : bad) any |= lane;
  return any == 0;
}

const Fp16Kernel& fp16() {
  static const Fp16Kernel fastest = fp16_kernels().back();
  return fastest;
}

}  // namespace

std::size_t encoded_bytes(Codec codec, std::size_t values) { return values * (codec == Codec::fp32 ? 4 : 2); }

void encode(Codec codec, std::span<const float> values, float scale, std::span<std::byte> out) {
  TW_CHECK(out.size() == encoded_bytes(codec, values.size()));
  if (codec == Codec::fp32) return encode_fp32(values, scale, out.data());
  fp16().encode(values.data(), values.size(), scale, out.data());
}

bool decode(Codec codec, std::span<const std::byte> in, std::span<float> values) {
  TW_CHECK(in.size() == encoded_bytes(codec, values.size()));
  if (codec == Codec::fp32) return decode_fp32(in.data(), values);
  return fp16().decode(in.data(), values.size(), values.data());
}

}  // namespace tw
