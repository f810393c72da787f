// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2 and F16C: nothing here may run where they are missing, or become a shared
// inline function.
#include <immintrin.h>

#include "codec/fp16.h"

namespace tw {
namespace {

void encode_by_eight(const float* values, std::size_t count, float scale, std::byte* out) {
  const __m256 factor = _mm256_set1_ps(scale);
  const __m256 sign_bit = _mm256_set1_ps(-0.0F);
  const __m256 infinity = _mm256_set1_ps(__builtin_inff());
  const __m256 largest = _mm256_set1_ps(65504.0F);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 value = _mm256_mul_ps(_mm256_loadu_ps(values + i), factor);
    const __m256 magnitude = _mm256_andnot_ps(sign_bit, value);
    const __m256 finite = _mm256_cmp_ps(magnitude, infinity, _CMP_LT_OQ);
    const __m256 saturated = _mm256_or_ps(_mm256_and_ps(sign_bit, value), _mm256_min_ps(magnitude, largest));
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_blendv_ps(value, saturated, finite), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), halves);
  }
  fp16_reference().encode(values + i, count - i, scale, out + 2 * i);
}

bool decode_by_eight(const std::byte* in, std::size_t count, float* values) {
  const __m128i exponent = _mm_set1_epi16(0x7c00);
  __m128i not_finite = _mm_setzero_si128();
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i));
    not_finite = _mm_or_si128(not_finite, _mm_cmpeq_epi16(_mm_and_si128(halves, exponent), exponent));
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(halves));
  }
  const bool rest_finite = fp16_reference().decode(in + 2 * i, count - i, values + i);
  return rest_finite && _mm_movemask_epi8(not_finite) == 0;
}

}  // namespace

Fp16Kernel fp16_avx2() { return {"avx2", encode_by_eight, decode_by_eight}; }

}  // namespace tw
