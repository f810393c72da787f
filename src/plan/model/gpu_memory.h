// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "plan/model/model_profile.h"

namespace tw::plan {

/// What a peer needs of the memory of one GPU.
struct GpuMemoryNeed {
  double gib = 0;  ///< with a margin of 10 %
  std::string from;
};

/// The most that `tw profile` saw, else an estimate of what parameters, gradients and an optimizer with two
/// moments take: 16 bytes a parameter. Activations are in the measurement alone.
GpuMemoryNeed gpu_memory_need(const ModelProfile& model);

/// An error if the model does not fit. memory_gib: of one GPU of the machine; 0: by its data sheet. A machine
/// on which the model was measured has enough, and one of unknown memory is not judged.
Status check_gpu_memory(const ModelProfile& model, const std::string& machine, double memory_gib,
                        const Gpus& gpus);

/// The memory of one GPU of the machine; 0: not known.
double gpu_memory_gib(const std::string& machine, double memory_gib, const Gpus& gpus);

}  // namespace tw::plan
