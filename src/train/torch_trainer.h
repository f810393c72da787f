// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "train/learn/trainer.h"
#include "train/run/run.h"
#include "train/run/run_data.h"

namespace tw::train {

/// A trainer that runs a built-in model or a TorchScript file with libtorch on the CPU, with `threads`
/// threads.
///
/// A TorchScript module has `forward(inputs, targets)`, which returns the mean loss of the batch, and may
/// have `correct(inputs, targets)`, which returns the number of right answers (one for each integer target,
/// or one for each sample where the targets are floats). Its parameters are float32; those without
/// requires_grad do not change. Buffers that training changes (BatchNorm) are the tail of the flat vector
/// (train/torch_buffers.h).
///
/// The trainer reads the data, and tries the model on a first batch, so that a mismatch is an error here. If
/// the options name no evaluation data, the loss that evaluate() returns is NaN. accumulate() and evaluate()
/// throw std::runtime_error when the model fails on a later batch.
Result<std::unique_ptr<Trainer>> make_torch_trainer(const RunOptions& options, int threads = 1,
                                                    const DataDoors& doors = {});

}  // namespace tw::train
