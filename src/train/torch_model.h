// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "train/run/run.h"

// Only named here: a libtorch header costs 10 to 20 seconds in each file that includes it.
namespace at {
class Tensor;
}  // namespace at

namespace tw::train {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct BatchResult;

/// A model as the trainer sees it. Functions of torch throw; the trainer catches.
class TorchModel {
 public:
  virtual ~TorchModel() = default;

  /// float32 leaves to be trained; tied ones come once for each use, sharing their storage.
  virtual const NamedTensors& parameters() const = 0;

  /// Tensors of the model that are not trained, each memory once, always in the same order.
  virtual NamedTensors buffers() const = 0;

  /// All tensors that a parameter file may name, by each of their names: parameters, trained or not, and
  /// buffers.
  virtual NamedTensors state() const = 0;

  /// Puts a tensor of the same shape and type in the place of buffers()[number].
  virtual void set_buffer(std::size_t number, const at::Tensor& value) = 0;

  virtual void set_training(bool training) = 0;

  /// Mean loss of the batch: one number, with its graph.
  virtual at::Tensor loss(const at::Tensor& inputs, const at::Tensor& targets) = 0;

  /// Loss and, if the model computes it, the number of right answers.
  virtual BatchResult judge(const at::Tensor& inputs, const at::Tensor& targets) = 0;
};

struct BatchResult {
  double mean_loss = 0;
  std::optional<double> correct;
};

/// mnist-cnn or char-transformer, with initial parameters from the seed: the same bits on every machine.
std::unique_ptr<TorchModel> make_built_in_model(const RunOptions& options);

/// A TorchScript file. Errors name the file and what it should look like.
Result<std::unique_ptr<TorchModel>> load_torch_script(const std::string& path);

bool is_built_in_model(const std::string& model);

}  // namespace tw::train
