// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <cmath>
#include <numeric>

#include "base/check.h"
#include "train/optimizer_kernels.h"

namespace tw {
namespace {

/// By repeated squaring: std::pow differs between systems.
double integer_power(double base, std::uint64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent >>= 1U) {
    if (exponent & 1U) power *= base;
    base *= base;
  }
  return power;
}

MomentStep moment_step(const OptimizerOptions& options) {
  return {static_cast<float>(options.beta1), static_cast<float>(1 - options.beta1),
          static_cast<float>(options.beta2), static_cast<float>(1 - options.beta2)};
}

AdamDirection adam_direction(const OptimizerOptions& options, std::uint64_t step) {
  TW_CHECK(step > 0);
  return {static_cast<float>(1 / (1 - integer_power(options.beta1, step))),
          static_cast<float>(1 / std::sqrt(1 - integer_power(options.beta2, step))),
          static_cast<float>(options.epsilon)};
}

class PlainSgd : public Optimizer {
 public:
  explicit PlainSgd(const OptimizerOptions& options)
      : weight_decay_(static_cast<float>(options.weight_decay)) {}

  void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t /*step*/,
             double learning_rate) override {
    mean([&](std::size_t first, std::span<const float> piece) {
      gradient_update(static_cast<float>(learning_rate), weight_decay_,
                      parameters.subspan(first, piece.size()), piece);
    });
  }

  std::vector<std::span<float>> state() override { return {}; }

 private:
  float weight_decay_;
};

class Sgd : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, std::uint64_t size) : options_(options), velocity_(size) {}

  void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t /*step*/,
             double learning_rate) override {
    const MomentumStep step{static_cast<float>(learning_rate), static_cast<float>(options_.momentum),
                            static_cast<float>(options_.weight_decay)};
    mean([&](std::size_t first, std::span<const float> piece) {
      nesterov_update(step, parameters.subspan(first, piece.size()),
                      std::span(velocity_).subspan(first, piece.size()), piece);
    });
  }

  std::vector<std::span<float>> state() override { return {velocity_}; }

 private:
  OptimizerOptions options_;
  std::vector<float> velocity_;
};

/// Loshchilov, Hutter 2019.
class AdamW : public Optimizer {
 public:
  AdamW(const OptimizerOptions& options, std::uint64_t size) : options_(options), m_(size), v_(size) {}

  void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t step,
             double learning_rate) override {
    const MomentStep moments = moment_step(options_);
    const AdamDirection direction = adam_direction(options_, step);
    const auto shrink = static_cast<float>(1 - learning_rate * options_.weight_decay);
    mean([&](std::size_t first, std::span<const float> piece) {
      const auto m = std::span(m_).subspan(first, piece.size()),
                 v = std::span(v_).subspan(first, piece.size());
      update_moments(moments, m, v, piece);
      adam_update(direction, {m, v}, shrink, static_cast<float>(learning_rate),
                  parameters.subspan(first, piece.size()));
    });
  }

  std::vector<std::span<float>> state() override { return {m_, v_}; }

 private:
  OptimizerOptions options_;
  std::vector<float> m_;
  std::vector<float> v_;
};

/// You et al. 2020, algorithm 2, with phi(x) = x; a tensor of which a norm is zero takes the plain Adam step.
class Lamb : public Optimizer {
 public:
  Lamb(const OptimizerOptions& options, std::vector<std::uint64_t> tensor_sizes, std::uint64_t size)
      : options_(options), tensor_sizes_(std::move(tensor_sizes)), m_(size), v_(size) {}

  void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t step,
             double learning_rate) override {
    TW_CHECK(parameters.size() == m_.size());
    mean([&, moments = moment_step(options_)](std::size_t first, std::span<const float> piece) {
      update_moments(moments, std::span(m_).subspan(first, piece.size()),
                     std::span(v_).subspan(first, piece.size()), piece);
    });
    const AdamDirection direction = adam_direction(options_, step);
    const auto weight_decay = static_cast<float>(options_.weight_decay);
    std::size_t first = 0;
    for (const std::uint64_t size : tensor_sizes_) {
      const std::span tensor = parameters.subspan(first, size);
      const Moments moments{std::span(m_).subspan(first, size), std::span(v_).subspan(first, size)};
      const SquaredNorms squared = lamb_norms(direction, moments, weight_decay, tensor);
      const bool usable = squared.parameters > 0 && squared.update > 0;
      const double trust = usable ? std::sqrt(squared.parameters) / std::sqrt(squared.update) : 1;
      lamb_update(direction, moments, weight_decay, static_cast<float>(learning_rate * trust), tensor);
      first += size;
    }
  }

  std::vector<std::span<float>> state() override { return {m_, v_}; }

 private:
  OptimizerOptions options_;
  std::vector<std::uint64_t> tensor_sizes_;
  std::vector<float> m_;
  std::vector<float> v_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          const std::vector<std::uint64_t>& tensor_sizes) {
  const std::uint64_t size = std::accumulate(tensor_sizes.begin(), tensor_sizes.end(), std::uint64_t{0});
  switch (options.kind) {
    case OptimizerKind::sgd:
      if (options.momentum == 0) return std::make_unique<PlainSgd>(options);
      return std::make_unique<Sgd>(options, size);
    case OptimizerKind::adamw:
      return std::make_unique<AdamW>(options, size);
    case OptimizerKind::lamb:
      return std::make_unique<Lamb>(options, tensor_sizes, size);
  }
  TW_CHECK(!"an optimizer kind");
}

}  // namespace tw
