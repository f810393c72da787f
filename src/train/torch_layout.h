// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/torch_model.h"

namespace tw::train {

/// Position of a tensor of a model in the flat vector.
struct FlatTensor {
  std::string name;
  std::vector<at::Tensor> tied;  ///< the parameters that are one tensor
  std::int64_t first = 0;        ///< floats
  std::int64_t size = 0;         ///< floats, at least 1
  std::vector<float> initial;
};

/// The trained parameters one after the other, each memory once. The error names a parameter that cannot be
/// trained.
Result<std::vector<FlatTensor>> lay_out(const TorchModel& model);

/// Whether both are the same elements of one memory.
bool same_memory(const at::Tensor& a, const at::Tensor& b);

}  // namespace tw::train
