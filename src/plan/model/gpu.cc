// SPDX-License-Identifier: Apache-2.0
#include "plan/model/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/result.h"

namespace tw::plan {

const Gpus& Gpus::built_in() {
  static const Gpus gpus = [] {
    Gpus known;
    for (const Gpu& gpu : market::built_in_gpus()) known.gpus_.emplace(gpu.name, gpu);
    return known;
  }();
  return gpus;
}

Result<Gpu> Gpus::find(const std::string& name) const {
  if (const auto found = gpus_.find(name); found != gpus_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [gpu, figures] : gpus_) known.push_back(gpu);
  return Error{
      fmt::format("{0}: unknown GPU; known are {1}; measure your model on it: tw profile --name {0} -o "
                  "model.yaml -- COMMAND",
                  name, fmt::join(known, ", "))};
}

}  // namespace tw::plan
