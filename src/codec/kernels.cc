// SPDX-License-Identifier: Apache-2.0
#include "codec/kernels.h"

#include "base/cpu_features.h"

namespace tw::codec {

const Kernel& KernelSet::of(Codec codec) const { return kernels[static_cast<std::size_t>(codec)]; }

std::vector<KernelSet> kernel_sets() {
  std::vector<KernelSet> sets = {reference_kernels()};
#if defined(__x86_64__)
  const CpuFeatures features = cpu_features();
  if (features.avx2) sets.push_back(avx2_kernels());
  if (features.avx512) sets.push_back(avx512_kernels());
#endif
  return sets;
}

}  // namespace tw::codec
