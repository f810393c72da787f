// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2, without fused operations: nothing here may run where it is missing. Wider registers gain
// nothing: memory bounds these loops (bench/optimizer.cc).
#include "train/learn/optimizer_loops.h"

namespace tw::train {

const AdamLoops& avx2_adam_loops() {
  static constexpr AdamLoops kLoops = loops_of("avx2");
  return kLoops;
}

}  // namespace tw::train
