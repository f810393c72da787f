// SPDX-License-Identifier: Apache-2.0
#include "codec/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tw::codec {
namespace {

#if defined(__x86_64__)
bool has_avx2_and_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // Clang's built-in does not know F16C. For AVX2 it asks the operating system, too, which serves both.
  return __builtin_cpu_supports("avx2") != 0 && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & bit_F16C) != 0;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}
#endif

}  // namespace

const Kernel& KernelSet::of(Codec codec) const { return kernels[static_cast<std::size_t>(codec)]; }

std::vector<KernelSet> kernel_sets() {
  std::vector<KernelSet> sets = {reference_kernels()};
#if defined(__x86_64__)
  if (has_avx2_and_f16c()) sets.push_back(avx2_kernels());
  if (has_avx2_and_f16c() && has_avx512()) sets.push_back(avx512_kernels());
#endif
  return sets;
}

}  // namespace tw::codec
