// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

/// The scale of a block of int8 or int4 (codec.h). The functions are static, not inline: each file is
/// compiled for its own instruction set and must not lend its copy to another file.
namespace tw::codec {

inline constexpr std::size_t kInt8Block = 256, kInt4Block = 64;
inline constexpr std::size_t kScaleBytes = 2;
inline constexpr float kInt8Levels = 127, kInt4Levels = 7;

/// Constants of the hash of Dither.
inline constexpr std::uint32_t kPlaceFactor = 0x9e3779b9, kFirstFactor = 0x7feb352d,
                               kSecondFactor = 0x846ca68b;
inline constexpr float kChanceUnit = 0x1p-24F;

inline constexpr std::uint32_t kInfinityBits = 0x7f800000;
inline constexpr std::uint32_t kTooLargeBits = 0x7f000000;  // 2^127, see is_addable
inline constexpr std::uint16_t kLargestScale = 0x7b00;      // 2^119
inline constexpr std::uint16_t kSmallestScale = 0x0d80;     // 2^-100
inline constexpr std::uint16_t kNoScale = 0x7fc0;           // NaN

enum class ScaleRounding { nearest, up };

/// bfloat16 code of the scale, from the bits of the largest magnitude of a block.
[[maybe_unused]] static std::uint16_t scale_code(std::uint32_t largest, float levels,
                                                 ScaleRounding rounding = ScaleRounding::nearest) {
  if (largest >= kInfinityBits) return kNoScale;
  const auto exact = __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, largest) / levels);
  const std::uint32_t more = rounding == ScaleRounding::up ? 0xffff : 0x7fff + ((exact >> 16) & 1);
  const std::uint32_t code = (exact + more) >> 16;
  if (code < kSmallestScale) return 0;
  return static_cast<std::uint16_t>(code < kLargestScale ? code : kLargestScale);
}

[[maybe_unused]] static bool is_scale(std::uint16_t code) { return code <= kLargestScale; }

[[maybe_unused]] static float scale_of(std::uint16_t code) {
  const std::uint32_t bits = static_cast<std::uint32_t>(is_scale(code) ? code : kNoScale) << 16;
  return __builtin_bit_cast(float, bits);
}

/// Factor for the values; 0 where all quanta are 0.
[[maybe_unused]] static float inverse_scale(std::uint16_t code) {
  return code == 0 || code == kNoScale ? 0.0F : 1.0F / scale_of(code);
}

[[maybe_unused]] static std::uint16_t read_scale(const std::byte* in) {
  std::uint16_t code = 0;
  std::memcpy(&code, in, sizeof code);
  return code;
}

[[maybe_unused]] static void write_scale(std::uint16_t code, std::byte* out) {
  std::memcpy(out, &code, sizeof code);
}

}  // namespace tw::codec
