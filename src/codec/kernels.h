// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "codec/codec.h"

namespace tw::codec {

/// One way to convert the values of one codec; all ways give the same bits. codec.h says what each function
/// does; `count` is in values.
struct Kernel {
  bool (*encode)(const float* values, std::size_t count, float scale, std::byte* out);
  bool (*decode)(const std::byte* in, std::size_t count, float* values);
  void (*add)(const std::byte* in, std::size_t count, float weight, float* sum);
  bool (*is_addable)(const std::byte* in, std::size_t count);
};

/// Kernels for one instruction set.
struct KernelSet {
  const char* name;
  Kernel kernels[kCodecs.size()];  ///< in the order of the codecs

  /// encode_int8
  bool (*dither_int8)(const float* values, std::size_t count, float scale, Dither dither, std::byte* out);

  const Kernel& of(Codec codec) const;
};

/// Portable, one value at a time; the others must match it.
const KernelSet& reference_kernels();

/// Requires AVX2 and F16C; x86-64 only.
const KernelSet& avx2_kernels();

/// Requires AVX-512 F, BW, DQ and VL; x86-64 only.
const KernelSet& avx512_kernels();

/// Kernel sets that this machine can run, the fastest last.
std::vector<KernelSet> kernel_sets();

}  // namespace tw::codec
