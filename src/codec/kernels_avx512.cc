// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512 F, BW, DQ and VL: nothing here may run where they are missing, or become a shared
// inline function.
#include <immintrin.h>

#include "codec/blocks.h"
#include "codec/kernels.h"

namespace tw::codec {
namespace {

constexpr std::size_t kLanes = 16;
constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

__m512i bits_of(__m512 values) { return _mm512_castps_si512(values); }

__m512i magnitude_of(__m512 values) {
  return _mm512_and_si512(bits_of(values), _mm512_set1_epi32(0x7fffffff));
}

__mmask16 first_lanes(std::size_t count) { return static_cast<__mmask16>((1U << count) - 1); }

// Sixteen values of a codec without blocks; lanes outside the mask are neither read nor written. `store`
// returns magnitudes: what it wrote is addable (is_addable) if all are below kLimit.
struct Fp32 {
  static constexpr std::size_t kBytes = 4;
  static constexpr std::uint32_t kLimit = kTooLargeBits;

  static __m512 load(const std::byte* in, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, in); }

  static __m512i store(std::byte* out, __mmask16 lanes, __m512 values) {
    _mm512_mask_storeu_ps(out, lanes, values);
    return magnitude_of(values);
  }
};

struct Fp16 {
  static constexpr std::size_t kBytes = 2;
  static constexpr std::uint32_t kLimit = kInfinityBits;

  static __m512 load(const std::byte* in, __mmask16 lanes) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, in));
  }

  static __m512i store(std::byte* out, __mmask16 lanes, __m512 values) {
    const __m512i magnitude = magnitude_of(values);
    const __m512i largest = bits_of(_mm512_set1_ps(65504.0F));
    const __mmask16 finite = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(kInfinityBits));
    const __m512i within = _mm512_mask_min_epu32(magnitude, finite, magnitude, largest);
    const __m512i sign = _mm512_andnot_si512(_mm512_set1_epi32(0x7fffffff), bits_of(values));
    const __m512 clamped = _mm512_castsi512_ps(_mm512_or_si512(within, sign));
    _mm256_mask_storeu_epi16(out, lanes, _mm512_cvtps_ph(clamped, kNearest));
    return magnitude;
  }
};

struct Bf16 {
  static constexpr std::size_t kBytes = 2;
  static constexpr std::uint32_t kLimit = kTooLargeBits;

  static __m512 load(const std::byte* in, __mmask16 lanes) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, in));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
  }

  static __m512i store(std::byte* out, __mmask16 lanes, __m512 values) {
    const __m512i magnitude = magnitude_of(values);
    const __m512i infinity = _mm512_set1_epi32(kInfinityBits);
    const __mmask16 finite = _mm512_cmplt_epu32_mask(magnitude, infinity);
    const __mmask16 nan = _mm512_cmpgt_epu32_mask(magnitude, infinity);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(magnitude, 16), _mm512_set1_epi32(1));
    const __m512i nearest = _mm512_add_epi32(_mm512_add_epi32(magnitude, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i within = _mm512_min_epu32(nearest, _mm512_set1_epi32(0x7f7fffff));
    const __m512i quiet = _mm512_mask_or_epi32(magnitude, nan, magnitude, _mm512_set1_epi32(0x400000));
    const __m512i rounded = _mm512_mask_mov_epi32(quiet, finite, within);
    const __m512i sign = _mm512_andnot_si512(_mm512_set1_epi32(0x7fffffff), bits_of(values));
    const __m512i words = _mm512_srli_epi32(_mm512_or_si512(rounded, sign), 16);
    _mm256_mask_storeu_epi16(out, lanes, _mm512_cvtepi32_epi16(words));
    return rounded;
  }
};

bool below(__m512i largest, std::uint32_t limit) { return _mm512_reduce_max_epu32(largest) < limit; }

template <class Format>
struct Single {
  static constexpr __mmask16 kAll = 0xffff;

  static bool encode(const float* values, std::size_t count, float scale, std::byte* out) {
    const __m512 factor = _mm512_set1_ps(scale);
    __m512i largest = _mm512_setzero_si512();
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(values + i), factor);
      largest = _mm512_max_epu32(largest, Format::store(out + Format::kBytes * i, kAll, scaled));
    }
    if (i < count) {
      const __mmask16 lanes = first_lanes(count - i);
      const __m512 scaled = _mm512_maskz_mul_ps(lanes, _mm512_maskz_loadu_ps(lanes, values + i), factor);
      largest = _mm512_max_epu32(largest, Format::store(out + Format::kBytes * i, lanes, scaled));
    }
    return below(largest, Format::kLimit);
  }

  static bool decode(const std::byte* in, std::size_t count, float* values) {
    __m512i largest = _mm512_setzero_si512();
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const __m512 decoded = Format::load(in + Format::kBytes * i, kAll);
      _mm512_storeu_ps(values + i, decoded);
      largest = _mm512_max_epu32(largest, magnitude_of(decoded));
    }
    if (i < count) {
      const __mmask16 lanes = first_lanes(count - i);
      const __m512 decoded = Format::load(in + Format::kBytes * i, lanes);
      _mm512_mask_storeu_ps(values + i, lanes, decoded);
      largest = _mm512_max_epu32(largest, magnitude_of(decoded));
    }
    return below(largest, kInfinityBits);
  }

  static void add(const std::byte* in, std::size_t count, float weight, float* sum) {
    const __m512 factor = _mm512_set1_ps(weight);
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const __m512 product = _mm512_mul_ps(factor, Format::load(in + Format::kBytes * i, kAll));
      _mm512_storeu_ps(sum + i, _mm512_add_ps(_mm512_loadu_ps(sum + i), product));
    }
    if (i < count) {
      const __mmask16 lanes = first_lanes(count - i);
      const __m512 product = _mm512_mul_ps(factor, Format::load(in + Format::kBytes * i, lanes));
      const __m512 total = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, sum + i), product);
      _mm512_mask_storeu_ps(sum + i, lanes, total);
    }
  }

  static bool is_addable(const std::byte* in, std::size_t count) {
    __m512i largest = _mm512_setzero_si512();
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      largest = _mm512_max_epu32(largest, magnitude_of(Format::load(in + Format::kBytes * i, kAll)));
    if (i < count) {
      const __m512 rest = Format::load(in + Format::kBytes * i, first_lanes(count - i));
      largest = _mm512_max_epu32(largest, magnitude_of(rest));
    }
    return below(largest, kTooLargeBits);
  }
};

// Whole blocks only; the reference does the rest.
struct Int8 {
  static constexpr Codec kCodec = Codec::int8;
  static constexpr std::size_t kBlock = kInt8Block, kBytes = kScaleBytes + kInt8Block;
  static constexpr float kLevels = kInt8Levels;

  template <class Quantum>
  static void pack(std::byte* quanta, Quantum quantum) {
    for (std::size_t i = 0; i < kBlock; i += kLanes)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(quanta + i), _mm512_cvtepi32_epi8(quantum(i)));
  }

  template <class Take>
  static void unpack(const std::byte* quanta, Take take) {
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quanta + i));
      take(i, _mm512_cvtepi8_epi32(bytes));
    }
  }
};

struct Int4 {
  static constexpr Codec kCodec = Codec::int4;
  static constexpr std::size_t kBlock = kInt4Block, kBytes = kScaleBytes + kInt4Block / 2;
  static constexpr float kLevels = kInt4Levels;
  static constexpr std::size_t kUpper = kInt4Block / 2;

  template <class Quantum>
  static void pack(std::byte* quanta, Quantum quantum) {
    for (std::size_t i = 0; i < kUpper; i += kLanes) {
      const __m512i lower = _mm512_and_si512(quantum(i), _mm512_set1_epi32(0xf));
      const __m512i upper = _mm512_slli_epi32(quantum(kUpper + i), 4);
      const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_or_si512(lower, upper));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(quanta + i), bytes);
    }
  }

  template <class Take>
  static void unpack(const std::byte* quanta, Take take) {
    for (std::size_t i = 0; i < kUpper; i += kLanes) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quanta + i));
      const __m512i both = _mm512_cvtepi8_epi32(bytes);
      take(i, _mm512_srai_epi32(_mm512_slli_epi32(both, 28), 28));
      take(kUpper + i, _mm512_srai_epi32(both, 4));
    }
  }
};

// Kinds of rounding. `steps` belong to the values from `place` on in the present block.
struct Nearest {
  static constexpr ScaleRounding kScale = ScaleRounding::nearest;

  void next_block() {}

  __m512i operator()(__m512 steps, std::size_t) const { return _mm512_cvt_roundps_epi32(steps, kNearest); }
};

struct Dithered {
  static constexpr ScaleRounding kScale = ScaleRounding::up;
  Dither dither;

  void next_block() { dither.first += kInt8Block; }

  __m512i operator()(__m512 steps, std::size_t place) const {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_add_epi32(
        lanes, _mm512_set1_epi32(static_cast<int>(dither.first + static_cast<std::uint32_t>(place))));
    __m512i h = _mm512_mullo_epi32(places, _mm512_set1_epi32(static_cast<int>(kPlaceFactor)));
    h = _mm512_add_epi32(h, _mm512_set1_epi32(static_cast<int>(dither.seed)));
    h = _mm512_xor_si512(h, _mm512_srli_epi32(h, 16));
    h = _mm512_mullo_epi32(h, _mm512_set1_epi32(kFirstFactor));
    h = _mm512_xor_si512(h, _mm512_srli_epi32(h, 15));
    h = _mm512_mullo_epi32(h, _mm512_set1_epi32(static_cast<int>(kSecondFactor)));
    h = _mm512_xor_si512(h, _mm512_srli_epi32(h, 16));
    const __m512 units = _mm512_cvtepi32_ps(_mm512_srli_epi32(h, 8));
    const __m512 chance = _mm512_mul_ps(units, _mm512_set1_ps(kChanceUnit));
    return _mm512_cvt_roundps_epi32(_mm512_add_ps(steps, chance), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }
};

/// Encodes all whole blocks; moves values, count and out beyond them.
template <class Format, class Round>
bool encode_blocks(const float*& values, std::size_t& count, float scale, std::byte*& out, Round round) {
  const __m512 factor = _mm512_set1_ps(scale);
  const __m512i levels = _mm512_set1_epi32(static_cast<int>(Format::kLevels));
  const __m512i least = _mm512_sub_epi32(_mm512_setzero_si512(), levels);
  bool fine = true;
  for (; count >= Format::kBlock; count -= Format::kBlock, values += Format::kBlock, out += Format::kBytes) {
    __m512i largest = _mm512_setzero_si512();
    for (std::size_t i = 0; i < Format::kBlock; i += kLanes) {
      const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(values + i), factor);
      largest = _mm512_max_epu32(largest, magnitude_of(scaled));
    }
    const std::uint16_t code = scale_code(_mm512_reduce_max_epu32(largest), Format::kLevels, Round::kScale);
    write_scale(code, out);
    fine = fine && is_scale(code);
    const float inverse = inverse_scale(code);
    // Lanes of a block without a scale hold NaN or infinity: they are masked out.
    const __mmask16 lanes = inverse == 0 ? 0 : 0xffff;
    Format::pack(out + kScaleBytes, [=, block = values](std::size_t i) {
      const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(block + i), factor);
      const __m512 exact = _mm512_maskz_mul_ps(lanes, scaled, _mm512_set1_ps(inverse));
      const __m512i whole = _mm512_maskz_mov_epi32(lanes, round(exact, i));
      return _mm512_max_epi32(_mm512_min_epi32(whole, levels), least);
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
  static bool encode(const float* values, std::size_t count, float scale, std::byte* out) {
    const bool fine = encode_blocks<Format>(values, count, scale, out, Nearest{});
    return reference_kernels().of(Format::kCodec).encode(values, count, scale, out) && fine;
  }

  static bool decode(const std::byte* in, std::size_t count, float* values) {
    bool fine = true;
    for (; count >= Format::kBlock; count -= Format::kBlock, values += Format::kBlock, in += Format::kBytes) {
      const std::uint16_t code = read_scale(in);
      const __m512 scale = _mm512_set1_ps(scale_of(code));
      fine = fine && is_scale(code);
      Format::unpack(in + kScaleBytes, [=](std::size_t i, __m512i quanta) {
        _mm512_storeu_ps(values + i, _mm512_mul_ps(scale, _mm512_cvtepi32_ps(quanta)));
      });
    }
    return reference_kernels().of(Format::kCodec).decode(in, count, values) && fine;
  }

  static void add(const std::byte* in, std::size_t count, float weight, float* sum) {
    const __m512 factor = _mm512_set1_ps(weight);
    for (; count >= Format::kBlock; count -= Format::kBlock, sum += Format::kBlock, in += Format::kBytes) {
      const __m512 scale = _mm512_set1_ps(scale_of(read_scale(in)));
      Format::unpack(in + kScaleBytes, [=](std::size_t i, __m512i quanta) {
        const __m512 product = _mm512_mul_ps(factor, _mm512_mul_ps(scale, _mm512_cvtepi32_ps(quanta)));
        _mm512_storeu_ps(sum + i, _mm512_add_ps(_mm512_loadu_ps(sum + i), product));
      });
    }
    reference_kernels().of(Format::kCodec).add(in, count, weight, sum);
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

const KernelSet& avx512_kernels() {
  static const KernelSet kSet = {"avx512",
                                 {single<Single<Fp32>>(), single<Single<Fp16>>(), single<Single<Bf16>>(),
                                  blocks<Blocks<Int8>>(Codec::int8), blocks<Blocks<Int4>>(Codec::int4)},
                                 dither_int8};
  return kSet;
}

}  // namespace tw::codec
