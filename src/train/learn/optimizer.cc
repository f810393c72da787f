// SPDX-License-Identifier: Apache-2.0
#include "train/learn/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "train/learn/optimizer_kernels.h"

namespace tw::train {
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

/// What one step of a group is computed with.
struct StepValues {
  double learning_rate;
  OptimizerOptions options;
  MomentStep moments;
  AdamDirection direction;

  float rate() const { return static_cast<float>(learning_rate); }

  float weight_decay() const { return static_cast<float>(options.weight_decay); }
};

StepValues step_values(std::uint64_t step, const OptimizerOptions& options, const GroupStep& group) {
  OptimizerOptions now = options;
  now.momentum = group.momentum.value_or(options.momentum);
  now.beta1 = group.beta1.value_or(options.beta1);
  now.beta2 = group.beta2.value_or(options.beta2);
  now.epsilon = group.epsilon.value_or(options.epsilon);
  now.weight_decay = group.weight_decay.value_or(options.weight_decay);
  const MomentStep moments{static_cast<float>(now.beta1), static_cast<float>(1 - now.beta1),
                           static_cast<float>(now.beta2), static_cast<float>(1 - now.beta2)};
  const AdamDirection direction{static_cast<float>(1 / (1 - integer_power(now.beta1, step))),
                                static_cast<float>(1 / std::sqrt(1 - integer_power(now.beta2, step))),
                                static_cast<float>(now.epsilon)};
  return {group.learning_rate, now, moments, direction};
}

/// Updates one group. Places count from the beginning of the group.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Takes a piece of the gradient; `parameters` are those of the piece. Pieces do not depend on each other.
  virtual void take(const StepValues& now, std::span<float> parameters, std::size_t first,
                    std::span<const float> gradient) = 0;

  /// Follows the last piece of a step; `parameters` are those of the group.
  virtual void finish(const StepValues& /*now*/, std::span<float> /*parameters*/) {}

  virtual std::vector<std::span<float>> state() { return {}; }
};

class PlainSgd : public UpdateRule {
 public:
  void take(const StepValues& now, std::span<float> parameters, std::size_t /*first*/,
            std::span<const float> gradient) override {
    TW_CHECK(now.options.momentum == 0);
    gradient_update(now.rate(), now.weight_decay(), parameters, gradient);
  }
};

class MomentumSgd : public UpdateRule {
 public:
  explicit MomentumSgd(std::uint64_t size) : velocity_(size) {}

  void take(const StepValues& now, std::span<float> parameters, std::size_t first,
            std::span<const float> gradient) override {
    // As in PyTorch, a step without momentum leaves the velocity as it is.
    if (now.options.momentum == 0)
      return gradient_update(now.rate(), now.weight_decay(), parameters, gradient);
    const MomentumStep step{now.rate(), static_cast<float>(now.options.momentum), now.weight_decay()};
    const auto velocity = std::span(velocity_).subspan(first, gradient.size());
    if (now.options.nesterov) return nesterov_update(step, parameters, velocity, gradient);
    momentum_update(step, parameters, velocity, gradient);
  }

  std::vector<std::span<float>> state() override { return {velocity_}; }

 private:
  std::vector<float> velocity_;
};

/// First and second moments of the gradient.
struct MomentBuffers {
  explicit MomentBuffers(std::uint64_t size) : m(size), v(size) {}

  std::span<float> m_of(std::size_t first, std::size_t size) { return std::span(m).subspan(first, size); }

  std::span<float> v_of(std::size_t first, std::size_t size) { return std::span(v).subspan(first, size); }

  Moments of(std::size_t first, std::size_t size) { return {m_of(first, size), v_of(first, size)}; }

  std::vector<float> m, v;
};

/// Kingma, Ba 2015.
class Adam : public UpdateRule {
 public:
  explicit Adam(std::uint64_t size) : moments_(size) {}

  void take(const StepValues& now, std::span<float> parameters, std::size_t first,
            std::span<const float> gradient) override {
    const std::size_t size = gradient.size();
    update_moments(now.moments, moments_.m_of(first, size), moments_.v_of(first, size),
                   DecayedGradient{now.weight_decay(), parameters, gradient});
    adam_update(now.direction, moments_.of(first, size), 1, now.rate(), parameters);
  }

  std::vector<std::span<float>> state() override { return {moments_.m, moments_.v}; }

 private:
  MomentBuffers moments_;
};

/// Loshchilov, Hutter 2019.
class AdamW : public UpdateRule {
 public:
  explicit AdamW(std::uint64_t size) : moments_(size) {}

  void take(const StepValues& now, std::span<float> parameters, std::size_t first,
            std::span<const float> gradient) override {
    const std::size_t size = gradient.size();
    update_moments(now.moments, moments_.m_of(first, size), moments_.v_of(first, size), gradient);
    const auto shrink = static_cast<float>(1 - now.learning_rate * now.options.weight_decay);
    adam_update(now.direction, moments_.of(first, size), shrink, now.rate(), parameters);
  }

  std::vector<std::span<float>> state() override { return {moments_.m, moments_.v}; }

 private:
  MomentBuffers moments_;
};

/// With phi(x) = x; a tensor of which a norm is zero takes the plain Adam step.
class Lamb : public UpdateRule {
 public:
  Lamb(std::uint64_t size, std::vector<std::uint64_t> tensor_sizes)
      : tensor_sizes_(std::move(tensor_sizes)), moments_(size) {}

  void take(const StepValues& now, std::span<float> /*parameters*/, std::size_t first,
            std::span<const float> gradient) override {
    const std::size_t size = gradient.size();
    update_moments(now.moments, moments_.m_of(first, size), moments_.v_of(first, size), gradient);
  }

  void finish(const StepValues& now, std::span<float> parameters) override {
    std::size_t first = 0;
    for (const std::uint64_t size : tensor_sizes_) {
      const std::span tensor = parameters.subspan(first, size);
      const Moments moments = moments_.of(first, size);
      const SquaredNorms squared = lamb_norms(now.direction, moments, now.weight_decay(), tensor);
      const bool usable = squared.parameters > 0 && squared.update > 0;
      const double trust = usable ? std::sqrt(squared.parameters) / std::sqrt(squared.update) : 1;
      lamb_update(now.direction, moments, now.weight_decay(), static_cast<float>(now.learning_rate * trust),
                  tensor);
      first += size;
    }
  }

  std::vector<std::span<float>> state() override { return {moments_.m, moments_.v}; }

 private:
  std::vector<std::uint64_t> tensor_sizes_;
  MomentBuffers moments_;
};

class Average : public UpdateRule {
 public:
  void take(const StepValues& /*now*/, std::span<float> parameters, std::size_t /*first*/,
            std::span<const float> mean) override {
    add_mean(parameters, mean);
  }
};

class ShareAverage : public UpdateRule {
 public:
  void take(const StepValues& /*now*/, std::span<float> parameters, std::size_t first,
            std::span<const float> mean) override {
    if (first == 0) {
      share_ = mean.front();
      parameters = parameters.subspan(1);
      mean = mean.subspan(1);
    }
    if (share_ > 0) add_part_mean(parameters, mean, share_);
  }

 private:
  float share_ = 0;  // of the step; its piece is the first one
};

std::unique_ptr<UpdateRule> make_rule(const ParameterGroup& group) {
  switch (group.options.kind) {
    case OptimizerKind::sgd:
      if (group.options.momentum == 0) return std::make_unique<PlainSgd>();
      return std::make_unique<MomentumSgd>(group.size);
    case OptimizerKind::adam:
      return std::make_unique<Adam>(group.size);
    case OptimizerKind::adamw:
      return std::make_unique<AdamW>(group.size);
    case OptimizerKind::lamb:
      return std::make_unique<Lamb>(group.size, group.tensor_sizes);
    case OptimizerKind::average:
      return std::make_unique<Average>();
    case OptimizerKind::share_average:
      return std::make_unique<ShareAverage>();
  }
  TW_CHECK(!"an optimizer kind");
}

std::uint64_t sum_of_sizes(const std::vector<std::uint64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

class GroupedOptimizer : public Optimizer {
 public:
  GroupedOptimizer(const std::vector<ParameterGroup>& groups, double clip_norm) : clip_norm_(clip_norm) {
    TW_CHECK(clip_norm >= 0);
    for (const ParameterGroup& group : groups) {
      TW_CHECK(group.size == sum_of_sizes(group.tensor_sizes));
      groups_.push_back({size_, group.size, group.options, make_rule(group), {}});
      size_ += group.size;
    }
  }

  void apply(std::span<float> parameters, const MeanGradient& mean, std::uint64_t step,
             std::span<const GroupStep> groups) override {
    TW_CHECK(step > 0 && parameters.size() == size_);
    TW_CHECK(groups.size() == 1 || groups.size() == groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i)
      groups_[i].now = step_values(step, groups_[i].options, groups[groups.size() == 1 ? 0 : i]);
    const std::optional<float> scale = clipping(mean);
    mean([&](std::size_t first, std::span<const float> piece) {
      cut(first, piece, [&](const Group& group, std::size_t at, std::span<const float> part) {
        update(group, parameters.subspan(at, part.size()), {at, part, scale});
      });
    });
    for (const Group& group : groups_)
      group.rule->finish(group.now, parameters.subspan(group.first, group.size));
  }

  std::vector<std::span<float>> state() override {
    std::vector<std::span<float>> all;
    for (const Group& group : groups_) {
      for (const std::span<float> buffer : group.rule->state()) all.push_back(buffer);
    }
    return all;
  }

 private:
  struct Group {
    std::size_t first;
    std::size_t size;
    OptimizerOptions options;
    std::unique_ptr<UpdateRule> rule;
    StepValues now;

    bool clipped() const { return !averages(options.kind); }
  };

  /// Part of the mean that lies in one group.
  struct Part {
    std::size_t first;  // place in the flat vector
    std::span<const float> gradient;
    std::optional<float> scale;
  };

  /// visit(group, place, part) for what of the piece lies in each group.
  template <class Visit>
  void cut(std::size_t first, std::span<const float> piece, const Visit& visit) const {
    auto group = std::upper_bound(groups_.begin(), groups_.end(), first,
                                  [](std::size_t place, const Group& g) { return place < g.first; });
    TW_CHECK(group != groups_.begin());
    for (--group; !piece.empty(); ++group) {
      TW_CHECK(group != groups_.end());
      const std::size_t size = std::min(piece.size(), group->first + group->size - first);
      if (size > 0) visit(*group, first, piece.first(size));
      first += size;
      piece = piece.subspan(size);
    }
  }

  /// What the gradient is multiplied by; nothing where it is short enough.
  std::optional<float> clipping(const MeanGradient& mean) const {
    if (clip_norm_ == 0) return std::nullopt;
    SumLanes lanes{};
    mean([&](std::size_t first, std::span<const float> piece) {
      cut(first, piece, [&](const Group& group, std::size_t at, std::span<const float> part) {
        if (group.clipped()) add_squares(at, part, lanes);
      });
    });
    const double norm = std::sqrt(sum_of_lanes(lanes));
    if (norm <= clip_norm_) return std::nullopt;
    return static_cast<float>(clip_norm_ / (norm + 1e-6));
  }

  static void update(const Group& group, std::span<float> parameters, const Part& part) {
    const std::size_t place = part.first - group.first;
    if (!part.scale || !group.clipped()) return group.rule->take(group.now, parameters, place, part.gradient);
    std::array<float, 2048> scaled;  // stays in the first-level cache
    for (std::size_t done = 0; done < part.gradient.size(); done += scaled.size()) {
      const std::size_t size = std::min(scaled.size(), part.gradient.size() - done);
      const auto piece = std::span(scaled).first(size);
      scale_into(*part.scale, part.gradient.subspan(done, size), piece);
      group.rule->take(group.now, parameters.subspan(done, size), place + done, piece);
    }
  }

  double clip_norm_;
  std::uint64_t size_ = 0;
  std::vector<Group> groups_;
};

}  // namespace

ParameterGroup one_group(const OptimizerOptions& options, std::vector<std::uint64_t> tensor_sizes) {
  const std::uint64_t size = sum_of_sizes(tensor_sizes);
  return {size, std::move(tensor_sizes), options};
}

std::unique_ptr<Optimizer> make_optimizer(const std::vector<ParameterGroup>& groups, double clip_norm) {
  return std::make_unique<GroupedOptimizer>(groups, clip_norm);
}

}  // namespace tw::train
