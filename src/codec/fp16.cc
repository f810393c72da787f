// SPDX-License-Identifier: Apache-2.0
#include "codec/fp16.h"

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tw {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kLargestHalf = 0x477fe000;         // 65504 as float
constexpr std::uint32_t kSmallestNormalHalf = 0x38800000;  // 2^-14 as float

std::uint32_t shift_to_nearest_even(std::uint32_t value, std::uint32_t bits) {
  const std::uint32_t quotient = value >> bits;
  const std::uint32_t rest = value & ((1U << bits) - 1);
  const std::uint32_t half = 1U << (bits - 1);
  return quotient + (rest > half || (rest == half && quotient % 2 == 1) ? 1 : 0);
}

std::uint32_t half_magnitude(std::uint32_t magnitude) {
  if (magnitude > kInfinity) return 0x7e00 | ((magnitude >> 13) & 0x3ff);
  if (magnitude == kInfinity) return 0x7c00;
  if (magnitude >= kLargestHalf) return 0x7bff;
  if (magnitude >= kSmallestNormalHalf) return shift_to_nearest_even(magnitude - (112U << 23), 13);
  // Subnormal halves are multiples of 2^-24; below 2^-25 (exponent field 102) nothing is left.
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return 0;
  return shift_to_nearest_even((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
}

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000) | half_magnitude(bits & 0x7fffffff));
}

float to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1f;
  const std::uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {
    const std::uint32_t quiet = mantissa == 0 ? 0 : 0x400000;
    return std::bit_cast<float>(sign | kInfinity | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

void encode_one_by_one(const float* values, std::size_t count, float scale, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t half = to_half(values[i] * scale);
    std::memcpy(out + 2 * i, &half, sizeof half);
  }
}

bool decode_one_by_one(const std::byte* in, std::size_t count, float* values) {
  bool finite = true;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, in + 2 * i, sizeof half);
    finite = finite && (half & 0x7c00) != 0x7c00;
    values[i] = to_float(half);
  }
  return finite;
}

#if defined(__x86_64__)
bool has_avx2_and_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // The built-in knows no F16C under Clang; for AVX2 it asks the operating system too, which serves both.
  return __builtin_cpu_supports("avx2") != 0 && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

Fp16Kernel fp16_reference() { return {"reference", encode_one_by_one, decode_one_by_one}; }

std::vector<Fp16Kernel> fp16_kernels() {
  std::vector<Fp16Kernel> kernels = {fp16_reference()};
#if defined(__x86_64__)
  if (has_avx2_and_f16c()) kernels.push_back(fp16_avx2());
#endif
  return kernels;
}

}  // namespace tw
