// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw {

/// Instructions that the processor has and whose registers the operating system keeps.
struct CpuFeatures {
  bool aes = false;
  bool avx2 = false;    ///< and F16C
  bool avx512 = false;  ///< F, BW, DQ and VL
};

/// Those of this machine. It asks the processor itself: __builtin_cpu_supports leaves that to the compiler's
/// runtime library, and zig's answers no to everything.
CpuFeatures cpu_features();

}  // namespace tw
