// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tw {

enum class OptimizerKind : std::uint8_t { sgd, adamw, lamb };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  double momentum = 0.9;       ///< sgd, Nesterov form
  double beta1 = 0.9;          ///< adamw, lamb
  double beta2 = 0.999;        ///< adamw, lamb
  double epsilon = 1e-8;       ///< adamw, lamb
  double weight_decay = 0.01;  ///< decoupled (adamw, lamb); L2 (sgd)
};

/// Hands out a mean gradient, one piece after the other; `first` is the place of its first value.
using TakePiece = std::function<void(std::size_t first, std::span<const float> piece)>;
using MeanGradient = std::function<void(const TakePiece& take)>;

/// Updates flat parameters in place. The same bits on every machine: only + - * / sqrt in a fixed order, no
/// fused multiply-add. Compute thread only.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update with the mean gradient, asked for once; into which pieces it is cut makes no difference.
  /// `step` counts from 1 (the round), learning_rate comes from the schedule.
  virtual void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t step,
                     double learning_rate) = 0;

  /// The buffers (moments) that are part of the state, each as long as the parameters; sync and checkpoints
  /// carry them.
  virtual std::vector<std::span<float>> state() = 0;
};

/// tensor_sizes: where LAMB's trust ratio is taken; their sum is the parameter count.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          const std::vector<std::uint64_t>& tensor_sizes);

}  // namespace tw
