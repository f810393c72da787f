// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tw::plan {

/// Data-sheet figures of a GPU, from which unmeasured speeds are estimated.
struct Gpu {
  double tensor_tflops = 0;  ///< dense fp16, with tensor cores if it has them, 1e12/s
  double memory_gb_per_s = 0;
  double memory_gib = 0;  ///< 0: not known
};

class Gpus {
 public:
  static const Gpus& built_in();

  /// An error names the known GPUs.
  Result<Gpu> find(const std::string& name) const;

  /// A known name in its proper case: T4 for t4. Others stay as they are.
  std::string spelled(const std::string& name) const;

  /// The known name of a GPU that its driver calls so: A100-80GB for "NVIDIA A100-SXM4-80GB". An unknown one:
  /// its words joined, without those of the vendor.
  std::string named(const std::string& driver_name) const;

 private:
  std::map<std::string, Gpu> gpus_;

  friend Result<Gpus> read_gpus(const std::string& file, std::string_view text);
};

/// CSV with the columns gpu,tensor_tflops,memory_gb_per_s and, where it is known, memory_gib.
Result<Gpus> read_gpus(const std::string& file, std::string_view text);

}  // namespace tw::plan
