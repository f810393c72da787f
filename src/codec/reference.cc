// SPDX-License-Identifier: Apache-2.0
// The reference for all other kernels: one value at a time, as codec.h defines it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "codec/blocks.h"
#include "codec/kernels.h"

namespace tw::codec {
namespace {

std::uint32_t magnitude_of(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffff; }

std::uint32_t shift_to_nearest_even(std::uint32_t value, std::uint32_t bits) {
  const std::uint32_t quotient = value >> bits;
  const std::uint32_t rest = value & ((1U << bits) - 1);
  const std::uint32_t half = 1U << (bits - 1);
  return quotient + (rest > half || (rest == half && quotient % 2 == 1) ? 1 : 0);
}

struct Fp32 {
  using Word = std::uint32_t;

  static Word of(float value) { return std::bit_cast<Word>(value); }

  static float value(Word word) { return std::bit_cast<float>(word); }
};

struct Bf16 {
  using Word = std::uint16_t;
  static constexpr std::uint32_t kLargest = 0x7f7f;

  static Word of(float value) {
    const std::uint32_t magnitude = magnitude_of(value);
    std::uint32_t rounded = std::min(shift_to_nearest_even(magnitude, 16), kLargest);
    if (magnitude >= kInfinityBits) rounded = magnitude >> 16;
    if (magnitude > kInfinityBits) rounded |= 0x40;
    return static_cast<Word>((std::bit_cast<std::uint32_t>(value) >> 16 & 0x8000) | rounded);
  }

  static float value(Word word) { return std::bit_cast<float>(static_cast<std::uint32_t>(word) << 16); }
};

struct Fp16 {
  using Word = std::uint16_t;
  static constexpr std::uint32_t kLargest = 0x477fe000;         // 65504 as float
  static constexpr std::uint32_t kSmallestNormal = 0x38800000;  // 2^-14 as float

  static std::uint32_t magnitude(std::uint32_t magnitude) {
    if (magnitude > kInfinityBits) return 0x7e00 | ((magnitude >> 13) & 0x3ff);
    if (magnitude == kInfinityBits) return 0x7c00;
    if (magnitude >= kLargest) return 0x7bff;
    if (magnitude >= kSmallestNormal) return shift_to_nearest_even(magnitude - (112U << 23), 13);
    // Subnormal halves are multiples of 2^-24; below 2^-25 (exponent field 102) the result is 0.
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return 0;
    return shift_to_nearest_even((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
  }

  static Word of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<Word>(((bits >> 16) & 0x8000) | magnitude(bits & 0x7fffffff));
  }

  static float value(Word half) {
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t exponent = (half >> 10) & 0x1f;
    const std::uint32_t mantissa = half & 0x3ff;
    if (exponent == 0) {
      const float value = static_cast<float>(mantissa) * 0x1p-24F;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    if (exponent == 0x1f) {
      const std::uint32_t quiet = mantissa == 0 ? 0 : 0x400000;
      return std::bit_cast<float>(sign | kInfinityBits | quiet | (mantissa << 13));
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
};

/// Codecs without blocks.
template <class Format>
struct Single {
  using Word = typename Format::Word;

  static float at(const std::byte* in, std::size_t i) {
    Word word{};
    std::memcpy(&word, in + i * sizeof word, sizeof word);
    return Format::value(word);
  }

  static bool encode(const float* values, std::size_t count, float scale, std::byte* out) {
    for (std::size_t i = 0; i < count; ++i) {
      const Word word = Format::of(values[i] * scale);
      std::memcpy(out + i * sizeof word, &word, sizeof word);
    }
    return is_addable(out, count);
  }

  static bool decode(const std::byte* in, std::size_t count, float* values) {
    bool finite = true;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = at(in, i);
      finite = finite && magnitude_of(values[i]) < kInfinityBits;
    }
    return finite;
  }

  static void add(const std::byte* in, std::size_t count, float weight, float* sum) {
    for (std::size_t i = 0; i < count; ++i) sum[i] += weight * at(in, i);
  }

  static bool is_addable(const std::byte* in, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (magnitude_of(at(in, i)) >= kTooLargeBits) return false;
    }
    return true;
  }
};

float nearest(float steps, std::size_t) { return std::nearbyint(steps); }

/// Value that Dither adds at this place.
float chance(Dither dither, std::size_t place) {
  std::uint32_t h = dither.seed + dither.from(place).first * kPlaceFactor;
  h = (h ^ h >> 16) * kFirstFactor;
  h = (h ^ h >> 15) * kSecondFactor;
  h ^= h >> 16;
  return static_cast<float>(h >> 8) * kChanceUnit;
}

struct Int8 {
  static constexpr std::size_t kBlock = kInt8Block;
  static constexpr float kLevels = kInt8Levels;

  static std::size_t bytes(std::size_t count) { return count; }

  static void put(int quantum, std::size_t i, std::size_t, std::byte* quanta) {
    quanta[i] = static_cast<std::byte>(quantum);
  }

  static int get(const std::byte* quanta, std::size_t i, std::size_t) {
    return static_cast<std::int8_t>(quanta[i]);
  }
};

struct Int4 {
  static constexpr std::size_t kBlock = kInt4Block;
  static constexpr float kLevels = kInt4Levels;

  static std::size_t bytes(std::size_t count) { return (count + 1) / 2; }

  static void put(int quantum, std::size_t i, std::size_t count, std::byte* quanta) {
    const auto half = static_cast<std::byte>(quantum & 0xf);
    const std::size_t lower = bytes(count);
    quanta[i % lower] = i < lower ? half : quanta[i - lower] | half << 4;
  }

  static int get(const std::byte* quanta, std::size_t i, std::size_t count) {
    const std::size_t lower = bytes(count);
    const auto byte = static_cast<int>(quanta[i % lower]);
    const int half = i < lower ? byte & 0xf : byte >> 4;
    return half < 8 ? half : half - 16;
  }
};

/// Codecs of blocks with a scale.
template <class Format>
struct Blocks {
  /// Calls for each block with its position among the values, its length, and its bytes.
  template <class Byte, class Visit>
  static bool each(Byte* bytes, std::size_t count, Visit visit) {
    bool fine = true;
    for (std::size_t first = 0; first < count; first += Format::kBlock) {
      const std::size_t length = std::min(Format::kBlock, count - first);
      fine = visit(first, length, bytes) && fine;
      bytes += kScaleBytes + Format::bytes(length);
    }
    return fine;
  }

  static bool encode(const float* values, std::size_t count, float scale, std::byte* out) {
    const auto code_of = [](std::uint32_t largest) { return scale_code(largest, Format::kLevels); };
    return encode({values, count}, scale, out, code_of, nearest);
  }

  /// Round: from steps and a place to an integer.
  template <class CodeOf, class Round>
  static bool encode(std::span<const float> values, float scale, std::byte* out, CodeOf code_of,
                     Round round) {
    return each(out, values.size(), [=](std::size_t first, std::size_t length, std::byte* block) {
      std::uint32_t largest = 0;
      for (std::size_t i = first; i < first + length; ++i)
        largest = std::max(largest, magnitude_of(values[i] * scale));
      const std::uint16_t code = code_of(largest);
      const float inverse = inverse_scale(code);
      write_scale(code, block);
      for (std::size_t i = 0; i < length; ++i) {
        const float whole = inverse == 0 ? 0 : round(values[first + i] * scale * inverse, first + i);
        const float quantum = std::clamp(whole, -Format::kLevels, Format::kLevels);
        Format::put(static_cast<int>(quantum), i, length, block + kScaleBytes);
      }
      return is_scale(code);
    });
  }

  static bool decode(const std::byte* in, std::size_t count, float* values) {
    return each(in, count, [=](std::size_t first, std::size_t length, const std::byte* block) {
      const std::uint16_t code = read_scale(block);
      for (std::size_t i = 0; i < length; ++i) {
        values[first + i] = scale_of(code) * static_cast<float>(Format::get(block + kScaleBytes, i, length));
      }
      return is_scale(code);
    });
  }

  static void add(const std::byte* in, std::size_t count, float weight, float* sum) {
    each(in, count, [=](std::size_t first, std::size_t length, const std::byte* block) {
      const float scale = scale_of(read_scale(block));
      for (std::size_t i = 0; i < length; ++i) {
        const float value = scale * static_cast<float>(Format::get(block + kScaleBytes, i, length));
        sum[first + i] += weight * value;
      }
      return true;
    });
  }

  static bool is_addable(const std::byte* in, std::size_t count) {
    return each(in, count,
                [](std::size_t, std::size_t, const std::byte* block) { return is_scale(read_scale(block)); });
  }
};

bool dither_int8(const float* values, std::size_t count, float scale, Dither dither, std::byte* out) {
  const auto code_of = [](std::uint32_t largest) {
    return scale_code(largest, kInt8Levels, ScaleRounding::up);
  };
  const auto round = [=](float steps, std::size_t place) {
    return std::floor(steps + chance(dither, place));
  };
  return Blocks<Int8>::encode({values, count}, scale, out, code_of, round);
}

template <class Way>
constexpr Kernel kernel() {
  return {Way::encode, Way::decode, Way::add, Way::is_addable};
}

}  // namespace

const KernelSet& reference_kernels() {
  static constexpr KernelSet kSet = {"reference",
                                     {kernel<Single<Fp32>>(), kernel<Single<Fp16>>(), kernel<Single<Bf16>>(),
                                      kernel<Blocks<Int8>>(), kernel<Blocks<Int4>>()},
                                     dither_int8};
  return kSet;
}

}  // namespace tw::codec
