// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tw::market {

/// Data-sheet figures of a GPU, from which unmeasured speeds are estimated.
struct Gpu {
  std::string name;
  double tensor_tflops = 0;  ///< dense fp16, with tensor cores if it has them, 1e12/s
  double memory_gb_per_s = 0;
  double memory_gib = 0;  ///< 0: not known
};

/// Those of catalog/gpus.csv, in its order.
const std::vector<Gpu>& built_in_gpus();

}  // namespace tw::market
