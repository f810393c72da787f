// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tw::train {

/// sgd, adam and adamw are those of torch.optim (sgd without dampening, adam without amsgrad); lamb is
/// algorithm 2 of You et al. 2020.
///
/// average adds the mean to buffers, keeps no state and is never clipped.
///
/// moving_average is for buffers that each forward pass moves towards its batch, such as the statistics of
/// BatchNorm. The mean is that of one step of momentum; the buffers make as many steps as the round had
/// passes, as one process that computes all of them would. So they get (1 - (1 - momentum)^passes) / momentum
/// of the mean: never beyond the batches' own mean, so a variance stays positive. momentum 0: the mean over
/// all passes of the run (BatchNorm with momentum=None). Several passes move them kFarthest of the way at
/// most: codecs round, and the variance of a dead channel must not become negative by that.
///
/// updates counts the updates of each tensor of the groups that are no averages. Its mean says how large a
/// share of the samples had a gradient for the tensor. As in torch.optim, a tensor without a gradient is left
/// alone: no decay, no momentum, no step of its bias correction. It counts the passes of each moving average,
/// too: their mean is passes per sample, and without any the mean is added as it is. One group at most has
/// this kind: the first; moving averages need it.
///
/// outside is for parameters that UpdateElsewhere updates by a rule of its own.
enum class OptimizerKind : std::uint8_t { sgd, adam, adamw, lamb, average, moving_average, updates, outside };

/// A smaller share of the samples is none: codecs round.
inline constexpr float kLeastShare = 1e-6F;

/// bf16 rounds twice, to 8 bits each.
inline constexpr double kFarthest = 1 - 1.0 / 64;

/// Its values are no parameters with a gradient.
constexpr bool averages(OptimizerKind kind) {
  return kind == OptimizerKind::average || kind == OptimizerKind::moving_average ||
         kind == OptimizerKind::updates;
}

/// Its tensors have a value each in the group of updates.
constexpr bool has_counts(OptimizerKind kind) {
  return !averages(kind) || kind == OptimizerKind::moving_average;
}

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  double momentum = 0.9;       ///< sgd: 0: no velocity is kept; moving_average: 0: over all passes
  bool nesterov = true;        ///< sgd with momentum
  double beta1 = 0.9;          ///< adam, adamw, lamb
  double beta2 = 0.999;        ///< adam, adamw, lamb
  double epsilon = 1e-8;       ///< adam, adamw, lamb
  double weight_decay = 0.01;  ///< decoupled (adamw, lamb); L2, added to the gradient (sgd, adam)
};

/// Consecutive parameters with one set of options. The groups cut the flat parameter vector in their order.
struct ParameterGroup {
  std::uint64_t size = 0;                   ///< floats
  std::vector<std::uint64_t> tensor_sizes;  ///< where LAMB's trust ratio is taken; their sum is the size
  OptimizerOptions options;
};

/// All parameters in one group.
ParameterGroup one_group(const OptimizerOptions& options, std::vector<std::uint64_t> tensor_sizes);

/// Options that may differ from step to step; default: those of the group. A group whose options have no
/// momentum cannot be given any, since it keeps no velocity.
struct GroupStep {
  double learning_rate = 1e-3;  ///< without effect on averages
  std::optional<double> momentum = {};
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> epsilon = {};
  std::optional<double> weight_decay = {};
};

/// Receives a part of a mean gradient, one piece after the other; `first` is the place of its first value.
/// Places rise from piece to piece.
using TakePiece = std::function<void(std::size_t first, std::span<const float> piece)>;

/// A mean gradient. Its parts are consecutive, and the same on every peer. Several threads read different
/// parts at once, each part as often as wanted.
struct MeanGradient {
  std::size_t parts = 1;
  std::function<void(std::size_t part, const TakePiece& take)> read;
  std::uint64_t samples = 1;  ///< it is over so many
};

/// What consecutive values take in one step of their rule; one tensor or more, whole. In float32, each
/// operation rounded, with g the values of the mean:
///
///     sgd     d = g + weight_decay * p;  momentum 0: p -= learning_rate * d
///             else u = momentum * u + d;  p -= learning_rate * (nesterov ? d + momentum * u : u)
///     adam    g += weight_decay * p, and then as adamw
///     adamw   m = beta1 * m + one_minus_beta1 * g;  v = beta2 * v + one_minus_beta2 * (g * g)
///             p = shrink * p - learning_rate * ((m * correction1) / (sqrt(v) * root_correction2 + epsilon))
struct RuleStep {
  std::uint64_t first = 0;  ///< place in the flat vector
  std::uint64_t count = 0;
  OptimizerKind kind = OptimizerKind::adamw;
  bool nesterov = false;
  float learning_rate = 0, weight_decay = 0, momentum = 0, shrink = 1;
  float beta1 = 0, one_minus_beta1 = 0, beta2 = 0, one_minus_beta2 = 0;
  float correction1 = 1, root_correction2 = 1, epsilon = 0;
};

/// Makes these steps where the parameters are, with the mean of the whole vector, clipped. The vectors of
/// state() are then written by whoever copies them.
using UpdateElsewhere =
    std::function<void(std::uint64_t step, std::span<const float> mean, std::span<const RuleStep> steps)>;

/// Updates flat parameters in place. The same bits on every machine and on any number of threads: only
/// + - * / sqrt in a fixed order, no fused multiply-add. Called on the compute thread.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update with the mean gradient; the pieces of a part do not affect the result. It is decoded once, or
  /// twice if its norm has a limit: decoding again costs less than the memory of a copy. `step` counts from 1
  /// (the round); with OptimizerKind::updates each tensor has its own. `groups`: one for each group, or one
  /// for all of them.
  virtual void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t step,
                     std::span<const GroupStep> groups) = 0;

  /// The same with one learning rate for all groups.
  void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t step,
             double learning_rate) {
    const GroupStep all{learning_rate};
    apply(parameters, mean, step, {&all, 1});
  }

  /// The buffers that are part of the state, which sync and checkpoints carry: group after group the velocity
  /// (sgd with momentum) or the first and the second moments (adam, adamw, lamb), each as long as its group.
  /// Number and sizes never change.
  virtual std::vector<std::span<float>> state() = 0;
};

/// clip_norm: largest L2 norm of the mean gradient over all groups but averages; a longer one is
/// multiplied by clip_norm / (norm + 1e-6), as by torch.nn.utils.clip_grad_norm_. 0: no limit. threads: of a
/// large update, at most. elsewhere: the update of all groups but averages, of which none is lamb; with the
/// same bits, and needed for groups of the kind outside.
std::unique_ptr<Optimizer> make_optimizer(const std::vector<ParameterGroup>& groups, double clip_norm = 0,
                                          std::size_t threads = 1, UpdateElsewhere elsewhere = {});

}  // namespace tw::train
