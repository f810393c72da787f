// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2 and F16C: nothing here may run where they are missing, or become a shared
// inline function.
#include <immintrin.h>

#include "codec/blocks.h"
#include "codec/kernels.h"

namespace tw::codec {
namespace {

constexpr std::size_t kLanes = 8;

__m256i bits_of(__m256 values) { return _mm256_castps_si256(values); }

__m256i magnitude_of(__m256 values) {
  return _mm256_and_si256(bits_of(values), _mm256_set1_epi32(0x7fffffff));
}

__m256i sign_of(__m256 values) { return _mm256_andnot_si256(_mm256_set1_epi32(0x7fffffff), bits_of(values)); }

std::uint32_t largest_of(__m256i magnitudes) {
  std::uint32_t lanes[kLanes];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), magnitudes);
  std::uint32_t largest = 0;
  for (const std::uint32_t lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

// Eight values of a codec without blocks. `store` returns magnitudes: what it wrote is addable (is_addable)
// if all are below kLimit. Magnitudes can be compared as signed numbers.
struct Fp32 {
  static constexpr Codec kCodec = Codec::fp32;
  static constexpr std::size_t kBytes = 4;
  static constexpr std::uint32_t kLimit = kTooLargeBits;

  static __m256 load(const std::byte* in) { return _mm256_loadu_ps(reinterpret_cast<const float*>(in)); }

  static __m256i store(std::byte* out, __m256 values) {
    _mm256_storeu_ps(reinterpret_cast<float*>(out), values);
    return magnitude_of(values);
  }
};

struct Fp16 {
  static constexpr Codec kCodec = Codec::fp16;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::uint32_t kLimit = kInfinityBits;

  static __m256 load(const std::byte* in) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
  }

  static __m256i store(std::byte* out, __m256 values) {
    const __m256i magnitude = magnitude_of(values);
    const __m256i finite = _mm256_cmpgt_epi32(_mm256_set1_epi32(kInfinityBits), magnitude);
    const __m256i smaller = _mm256_min_epu32(magnitude, bits_of(_mm256_set1_ps(65504.0F)));
    const __m256i within = _mm256_blendv_epi8(magnitude, smaller, finite);
    const __m256 clamped = _mm256_castsi256_ps(_mm256_or_si256(within, sign_of(values)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(clamped, _MM_FROUND_TO_NEAREST_INT));
    return magnitude;
  }
};

struct Bf16 {
  static constexpr Codec kCodec = Codec::bf16;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::uint32_t kLimit = kTooLargeBits;

  static __m256 load(const std::byte* in) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
  }

  static __m256i store(std::byte* out, __m256 values) {
    const __m256i magnitude = magnitude_of(values);
    const __m256i infinity = _mm256_set1_epi32(kInfinityBits);
    const __m256i finite = _mm256_cmpgt_epi32(infinity, magnitude);
    const __m256i nan = _mm256_cmpgt_epi32(magnitude, infinity);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 16), _mm256_set1_epi32(1));
    const __m256i nearest = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i within = _mm256_min_epu32(nearest, _mm256_set1_epi32(0x7f7fffff));
    const __m256i quiet = _mm256_or_si256(magnitude, _mm256_and_si256(nan, _mm256_set1_epi32(0x400000)));
    const __m256i rounded = _mm256_blendv_epi8(quiet, within, finite);
    const __m256i words = _mm256_srli_epi32(_mm256_or_si256(rounded, sign_of(values)), 16);
    const __m256i halves = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(halves));
    return rounded;
  }
};

template <class Format>
struct Single {
  static const Kernel& rest() { return reference_kernels().of(Format::kCodec); }

  static bool encode(const float* values, std::size_t count, float scale, std::byte* out) {
    const __m256 factor = _mm256_set1_ps(scale);
    __m256i largest = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values + i), factor);
      largest = _mm256_max_epu32(largest, Format::store(out + Format::kBytes * i, scaled));
    }
    const bool fine = largest_of(largest) < Format::kLimit;
    return rest().encode(values + i, count - i, scale, out + Format::kBytes * i) && fine;
  }

  static bool decode(const std::byte* in, std::size_t count, float* values) {
    __m256i largest = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const __m256 decoded = Format::load(in + Format::kBytes * i);
      _mm256_storeu_ps(values + i, decoded);
      largest = _mm256_max_epu32(largest, magnitude_of(decoded));
    }
    const bool fine = largest_of(largest) < kInfinityBits;
    return rest().decode(in + Format::kBytes * i, count - i, values + i) && fine;
  }

  static void add(const std::byte* in, std::size_t count, float weight, float* sum) {
    const __m256 factor = _mm256_set1_ps(weight);
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const __m256 product = _mm256_mul_ps(factor, Format::load(in + Format::kBytes * i));
      _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i), product));
    }
    rest().add(in + Format::kBytes * i, count - i, weight, sum + i);
  }

  static bool is_addable(const std::byte* in, std::size_t count) {
    __m256i largest = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      largest = _mm256_max_epu32(largest, magnitude_of(Format::load(in + Format::kBytes * i)));
    const bool fine = largest_of(largest) < kTooLargeBits;
    return rest().is_addable(in + Format::kBytes * i, count - i) && fine;
  }
};

// Stores the lowest byte of each of 32 numbers in order; `numbers(i)` gives eight, each within a byte.
template <class Numbers>
void store_bytes(std::byte* out, Numbers numbers) {
  const __m256i first = _mm256_packs_epi32(numbers(0), numbers(8));
  const __m256i second = _mm256_packs_epi32(numbers(16), numbers(24));
  const __m256i mixed = _mm256_packs_epi16(first, second);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permutevar8x32_epi32(mixed, order));
}

__m256i load_bytes(const std::byte* in) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in)));
}

// Whole blocks only; the reference does the rest.
struct Int8 {
  static constexpr Codec kCodec = Codec::int8;
  static constexpr std::size_t kBlock = kInt8Block, kBytes = kScaleBytes + kInt8Block;
  static constexpr float kLevels = kInt8Levels;

  template <class Quantum>
  static void pack(std::byte* quanta, Quantum quantum) {
    for (std::size_t i = 0; i < kBlock; i += 4 * kLanes)
      store_bytes(quanta + i, [=](std::size_t k) { return quantum(i + k); });
  }

  template <class Take>
  static void unpack(const std::byte* quanta, Take take) {
    for (std::size_t i = 0; i < kBlock; i += kLanes) take(i, load_bytes(quanta + i));
  }
};

struct Int4 {
  static constexpr Codec kCodec = Codec::int4;
  static constexpr std::size_t kBlock = kInt4Block, kBytes = kScaleBytes + kInt4Block / 2;
  static constexpr float kLevels = kInt4Levels;
  static constexpr std::size_t kUpper = kInt4Block / 2;

  template <class Quantum>
  static void pack(std::byte* quanta, Quantum quantum) {
    store_bytes(quanta, [=](std::size_t i) {
      const __m256i lower = _mm256_and_si256(quantum(i), _mm256_set1_epi32(0xf));
      return _mm256_or_si256(lower, _mm256_slli_epi32(quantum(kUpper + i), 4));
    });
  }

  template <class Take>
  static void unpack(const std::byte* quanta, Take take) {
    for (std::size_t i = 0; i < kUpper; i += kLanes) {
      const __m256i both = load_bytes(quanta + i);
      take(i, _mm256_srai_epi32(_mm256_slli_epi32(both, 28), 28));
      take(kUpper + i, _mm256_srai_epi32(both, 4));
    }
  }
};

// Kinds of rounding. `steps` belong to the values from `place` on in the present block.
struct Nearest {
  static constexpr ScaleRounding kScale = ScaleRounding::nearest;

  void next_block() {}

  __m256i operator()(__m256 steps, std::size_t) const { return _mm256_cvtps_epi32(steps); }
};

struct Dithered {
  static constexpr ScaleRounding kScale = ScaleRounding::up;
  Dither dither;

  void next_block() { dither.first += kInt8Block; }

  __m256i operator()(__m256 steps, std::size_t place) const {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i places = _mm256_add_epi32(
        lanes, _mm256_set1_epi32(static_cast<int>(dither.first + static_cast<std::uint32_t>(place))));
    __m256i h = _mm256_mullo_epi32(places, _mm256_set1_epi32(static_cast<int>(kPlaceFactor)));
    h = _mm256_add_epi32(h, _mm256_set1_epi32(static_cast<int>(dither.seed)));
    h = _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
    h = _mm256_mullo_epi32(h, _mm256_set1_epi32(kFirstFactor));
    h = _mm256_xor_si256(h, _mm256_srli_epi32(h, 15));
    h = _mm256_mullo_epi32(h, _mm256_set1_epi32(static_cast<int>(kSecondFactor)));
    h = _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
    const __m256 units = _mm256_cvtepi32_ps(_mm256_srli_epi32(h, 8));
    const __m256 chance = _mm256_mul_ps(units, _mm256_set1_ps(kChanceUnit));
    return _mm256_cvtps_epi32(_mm256_floor_ps(_mm256_add_ps(steps, chance)));
  }
};

/// Encodes all whole blocks; moves values, count and out beyond them.
template <class Format, class Round>
bool encode_blocks(const float*& values, std::size_t& count, float scale, std::byte*& out, Round round) {
  const __m256 factor = _mm256_set1_ps(scale);
  const __m256i levels = _mm256_set1_epi32(static_cast<int>(Format::kLevels));
  const __m256i least = _mm256_sub_epi32(_mm256_setzero_si256(), levels);
  bool fine = true;
  for (; count >= Format::kBlock; count -= Format::kBlock, values += Format::kBlock, out += Format::kBytes) {
    __m256i largest = _mm256_setzero_si256();
    for (std::size_t i = 0; i < Format::kBlock; i += kLanes) {
      const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values + i), factor);
      largest = _mm256_max_epu32(largest, magnitude_of(scaled));
    }
    const std::uint16_t code = scale_code(largest_of(largest), Format::kLevels, Round::kScale);
    write_scale(code, out);
    fine = fine && is_scale(code);
    const float inverse = inverse_scale(code);
    // Lanes of a block without a scale hold NaN or infinity: they are masked out.
    const __m256i lanes = _mm256_set1_epi32(inverse == 0 ? 0 : -1);
    Format::pack(out + kScaleBytes, [=, block = values](std::size_t i) {
      const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(block + i), factor);
      const __m256 exact = _mm256_mul_ps(scaled, _mm256_set1_ps(inverse));
      const __m256i whole = _mm256_and_si256(lanes, round(exact, i));
      return _mm256_max_epi32(_mm256_min_epi32(whole, levels), least);
    });
    round.next_block();
  }
  return fine;
}

bool dither_int8(const float* values, std::size_t count, float scale, Dither dither, std::byte* out) {
  const std::size_t all = count;
  const bool fine = encode_blocks<Int8>(values, count, scale, out, Dithered{dither});
  dither.first += static_cast<std::uint32_t>(all - count);
  return reference_kernels().dither_int8(values, count, scale, dither, out) && fine;
}

template <class Format>
struct Blocks {
  static const Kernel& rest() { return reference_kernels().of(Format::kCodec); }

  static bool encode(const float* values, std::size_t count, float scale, std::byte* out) {
    const bool fine = encode_blocks<Format>(values, count, scale, out, Nearest{});
    return rest().encode(values, count, scale, out) && fine;
  }

  static bool decode(const std::byte* in, std::size_t count, float* values) {
    bool fine = true;
    for (; count >= Format::kBlock; count -= Format::kBlock, values += Format::kBlock, in += Format::kBytes) {
      const std::uint16_t code = read_scale(in);
      const __m256 scale = _mm256_set1_ps(scale_of(code));
      fine = fine && is_scale(code);
      Format::unpack(in + kScaleBytes, [=](std::size_t i, __m256i quanta) {
        _mm256_storeu_ps(values + i, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(quanta)));
      });
    }
    return rest().decode(in, count, values) && fine;
  }

  static void add(const std::byte* in, std::size_t count, float weight, float* sum) {
    const __m256 factor = _mm256_set1_ps(weight);
    for (; count >= Format::kBlock; count -= Format::kBlock, sum += Format::kBlock, in += Format::kBytes) {
      const __m256 scale = _mm256_set1_ps(scale_of(read_scale(in)));
      Format::unpack(in + kScaleBytes, [=](std::size_t i, __m256i quanta) {
        const __m256 product = _mm256_mul_ps(factor, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(quanta)));
        _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i), product));
      });
    }
    rest().add(in, count, weight, sum);
  }
};

template <class Way>
constexpr Kernel single() {
  return {Way::encode, Way::decode, Way::add, Way::is_addable};
}

// Only scales are examined: vector code gains nothing.
template <class Way>
Kernel blocks(Codec codec) {
  return {Way::encode, Way::decode, Way::add, reference_kernels().of(codec).is_addable};
}

}  // namespace

const KernelSet& avx2_kernels() {
  static const KernelSet kSet = {"avx2",
                                 {single<Single<Fp32>>(), single<Single<Fp16>>(), single<Single<Bf16>>(),
                                  blocks<Blocks<Int8>>(Codec::int8), blocks<Blocks<Int4>>(Codec::int4)},
                                 dither_int8};
  return kSet;
}

}  // namespace tw::codec
