// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <bit>

#include "base/check.h"
#include "codec/blocks.h"
#include "codec/kernels.h"

namespace tw::codec {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");
static_assert(kCodecPiece % kInt8Block == 0 && kCodecPiece % kInt4Block == 0);

const KernelSet& fastest() {
  static const KernelSet set = kernel_sets().back();
  return set;
}

const Kernel& fastest(Codec codec) { return fastest().of(codec); }

std::size_t block_bytes(std::size_t values, std::size_t in_block, std::size_t in_byte) {
  const std::size_t rest = values % in_block;
  return values / in_block * (kScaleBytes + in_block / in_byte) +
         (rest == 0 ? 0 : kScaleBytes + (rest + in_byte - 1) / in_byte);
}

std::size_t values_of_blocks(std::size_t bytes, std::size_t in_block, std::size_t in_byte) {
  const std::size_t whole = kScaleBytes + in_block / in_byte;
  const std::size_t rest = bytes % whole;
  return bytes / whole * in_block + (rest <= kScaleBytes ? 0 : (rest - kScaleBytes) * in_byte);
}

}  // namespace

std::size_t encoded_bytes(Codec codec, std::size_t values) {
  switch (codec) {
    case Codec::fp32:
      return values * 4;
    case Codec::fp16:
    case Codec::bf16:
      return values * 2;
    case Codec::int8:
      return block_bytes(values, kInt8Block, 1);
    case Codec::int4:
      return block_bytes(values, kInt4Block, 2);
  }
  TW_CHECK(false);
}

std::size_t values_in(Codec codec, std::size_t bytes) {
  switch (codec) {
    case Codec::fp32:
      return bytes / 4;
    case Codec::fp16:
    case Codec::bf16:
      return bytes / 2;
    case Codec::int8:
      return values_of_blocks(bytes, kInt8Block, 1);
    case Codec::int4:
      return values_of_blocks(bytes, kInt4Block, 2);
  }
  TW_CHECK(false);
}

bool encode(Codec codec, std::span<const float> values, float scale, std::span<std::byte> out) {
  TW_CHECK(out.size() == encoded_bytes(codec, values.size()));
  return fastest(codec).encode(values.data(), values.size(), scale, out.data());
}

bool encode_int8(std::span<const float> values, float scale, Dither dither, std::span<std::byte> out) {
  TW_CHECK(out.size() == encoded_bytes(Codec::int8, values.size()));
  return fastest().dither_int8(values.data(), values.size(), scale, dither, out.data());
}

bool decode(Codec codec, std::span<const std::byte> in, std::span<float> values) {
  TW_CHECK(in.size() == encoded_bytes(codec, values.size()));
  return fastest(codec).decode(in.data(), values.size(), values.data());
}

void decode_add(Codec codec, std::span<const std::byte> in, float weight, std::span<float> sum) {
  TW_CHECK(in.size() == encoded_bytes(codec, sum.size()));
  fastest(codec).add(in.data(), sum.size(), weight, sum.data());
}

bool is_addable(Codec codec, std::span<const std::byte> encoded) {
  return fastest(codec).is_addable(encoded.data(), values_in(codec, encoded.size()));
}

}  // namespace tw::codec
