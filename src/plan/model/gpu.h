// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "market/gpu.h"

namespace tw::plan {

using market::Gpu;

class Gpus {
 public:
  static const Gpus& built_in();

  /// An error names the known GPUs.
  Result<Gpu> find(const std::string& name) const;

 private:
  std::map<std::string, Gpu> gpus_;
};

}  // namespace tw::plan
