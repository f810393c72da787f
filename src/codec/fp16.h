// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace tw {

/// One way to convert between float and IEEE 754 binary16 (little-endian, any alignment). All give the same
/// bits: nearest even, finite values beyond the range saturate, infinity stays, a NaN keeps sign and the
/// upper bits of its payload and is quiet.
struct Fp16Kernel {
  const char* name;
  void (*encode)(const float* values, std::size_t count, float scale, std::byte* out);
  /// False when a value is NaN or infinite.
  bool (*decode)(const std::byte* in, std::size_t count, float* values);
};

/// Portable, one value at a time; the judge of the others.
Fp16Kernel fp16_reference();

/// To be called only where AVX2 and F16C are there; x86-64 alone has it.
Fp16Kernel fp16_avx2();

/// Those that this machine can run, the fastest last.
std::vector<Fp16Kernel> fp16_kernels();

}  // namespace tw
