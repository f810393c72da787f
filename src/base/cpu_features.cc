// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tw {

#if defined(__x86_64__)

namespace {

/// Which registers the operating system saves (XCR0; Intel's manual, volume 1, 13.3).
unsigned saved_registers() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

CpuFeatures cpu_features() {
  constexpr unsigned kAvxRegisters = 0x6, kAvx512Registers = 0xe6;
  constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  CpuFeatures features;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.aes = (ecx & bit_AES) != 0;
  const bool f16c = (ecx & bit_F16C) != 0;
  const unsigned saved = (ecx & bit_OSXSAVE) != 0 ? saved_registers() : 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.avx2 = f16c && (ebx & bit_AVX2) != 0 && (saved & kAvxRegisters) == kAvxRegisters;
  features.avx512 =
      features.avx2 && (ebx & kAvx512) == kAvx512 && (saved & kAvx512Registers) == kAvx512Registers;
  return features;
}

#elif defined(__aarch64__)

CpuFeatures cpu_features() { return {.aes = (getauxval(AT_HWCAP) & (1 << 3)) != 0}; }

#else

CpuFeatures cpu_features() { return {}; }

#endif

}  // namespace tw
