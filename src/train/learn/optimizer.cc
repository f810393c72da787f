// SPDX-License-Identifier: Apache-2.0
#include "train/learn/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/pages.h"
#include "base/parallel.h"
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
  double gain = 1;  ///< averages: what the mean is multiplied by

  float rate() const { return static_cast<float>(learning_rate); }

  float weight_decay() const { return static_cast<float>(options.weight_decay); }

  /// What decoupled weight decay leaves of a parameter.
  float shrink() const {
    const bool decoupled = options.kind == OptimizerKind::adamw;
    return static_cast<float>(1 - (decoupled ? learning_rate * options.weight_decay : 0));
  }
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

  /// Whether finish() is for each tensor; else it is for all of a span.
  virtual bool goes_by_tensors() const { return false; }

  /// Follows the last piece of a step, for each span of tensors that are updated with the same values.
  virtual void finish(const StepValues& /*now*/, std::span<float> /*parameters*/, std::size_t /*first*/) {}

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

  Moments of(std::size_t first, std::size_t size) {
    return {std::span(m).subspan(first, size), std::span(v).subspan(first, size)};
  }

  std::vector<float> m, v;
};

/// Kingma, Ba 2015.
class Adam : public UpdateRule {
 public:
  explicit Adam(std::uint64_t size) : moments_(size) {}

  void take(const StepValues& now, std::span<float> parameters, std::size_t first,
            std::span<const float> gradient) override {
    adam_update({now.moments, now.direction, now.shrink(), now.rate()}, now.weight_decay(), parameters,
                moments_.of(first, gradient.size()), gradient);
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
    adamw_update({now.moments, now.direction, now.shrink(), now.rate()}, parameters,
                 moments_.of(first, gradient.size()), gradient);
  }

  std::vector<std::span<float>> state() override { return {moments_.m, moments_.v}; }

 private:
  MomentBuffers moments_;
};

/// With phi(x) = x; a tensor of which a norm is zero takes the plain Adam step.
class Lamb : public UpdateRule {
 public:
  explicit Lamb(std::uint64_t size) : moments_(size) {}

  void take(const StepValues& now, std::span<float> /*parameters*/, std::size_t first,
            std::span<const float> gradient) override {
    const Moments moments = moments_.of(first, gradient.size());
    update_moments(now.moments, moments.m, moments.v, gradient);
  }

  bool goes_by_tensors() const override { return true; }

  void finish(const StepValues& now, std::span<float> tensor, std::size_t first) override {
    const Moments moments = moments_.of(first, tensor.size());
    const SquaredNorms squared = lamb_norms(now.direction, moments, now.weight_decay(), tensor);
    const bool usable = squared.parameters > 0 && squared.update > 0;
    const double trust = usable ? std::sqrt(squared.parameters) / std::sqrt(squared.update) : 1;
    lamb_update(now.direction, moments, now.weight_decay(), static_cast<float>(now.learning_rate * trust),
                tensor);
  }

  std::vector<std::span<float>> state() override { return {moments_.m, moments_.v}; }

 private:
  MomentBuffers moments_;
};

class Average : public UpdateRule {
 public:
  void take(const StepValues& now, std::span<float> parameters, std::size_t /*first*/,
            std::span<const float> mean) override {
    add_mean(static_cast<float>(now.gain), parameters, mean);
  }
};

class Outside : public UpdateRule {
 public:
  void take(const StepValues& /*now*/, std::span<float> /*parameters*/, std::size_t /*first*/,
            std::span<const float> /*gradient*/) override {}
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
      return std::make_unique<Lamb>(group.size);
    case OptimizerKind::average:
    case OptimizerKind::moving_average:
    case OptimizerKind::updates:  // GroupedOptimizer counts
      return std::make_unique<Average>();
    case OptimizerKind::outside:
      return std::make_unique<Outside>();
  }
  TW_CHECK(!"an optimizer kind");
}

std::uint64_t sum_of_sizes(const std::vector<std::uint64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

/// A mean gradient in memory, in the parts that it came in.
class HeldMean {
 public:
  /// Reads all of it.
  void hold(const MeanGradient& mean, std::size_t length, std::size_t threads) {
    values_.resize(length);
    parts_.assign(mean.parts, {});
    in_parallel(threads, mean.parts, [&](std::size_t i) {
      Range& part = parts_[i];
      mean.read(i, [&](std::size_t first, std::span<const float> piece) {
        if (part.size == 0) part.first = first;
        part.size += piece.size();
        std::ranges::copy(piece, values_.begin() + static_cast<std::ptrdiff_t>(first));
      });
    });
    samples_ = mean.samples;
  }

  MeanGradient mean() const {
    return {parts_.size(),
            [this](std::size_t part, const TakePiece& take) {
              const auto [first, size] = parts_[part];
              if (size > 0) take(first, std::span(values_).subspan(first, size));
            },
            samples_};
  }

  std::span<float> values() { return values_; }

 private:
  struct Range {
    std::size_t first = 0, size = 0;
  };

  PagedFloats values_;
  std::vector<Range> parts_;
  std::uint64_t samples_ = 1;
};

class GroupedOptimizer : public Optimizer {
 public:
  GroupedOptimizer(const std::vector<ParameterGroup>& groups, double clip_norm, std::size_t threads,
                   UpdateElsewhere elsewhere)
      : clip_norm_(clip_norm), elsewhere_(std::move(elsewhere)) {
    TW_CHECK(clip_norm >= 0);
    for (const ParameterGroup& group : groups) {
      TW_CHECK(group.size == sum_of_sizes(group.tensor_sizes));
      TW_CHECK(group.options.kind != OptimizerKind::updates || groups_.empty());
      TW_CHECK(group.options.kind != OptimizerKind::lamb || !elsewhere_);
      TW_CHECK(group.options.kind != OptimizerKind::moving_average || !shares_.empty() || group.size == 0);
      groups_.push_back({size_, group.size, group.tensor_sizes, group.options, make_rule(group), {}});
      size_ += group.size;
      if (group.options.kind == OptimizerKind::updates) shares_.resize(group.size);
      if (has_counts(group.options.kind)) tensors_ += group.tensor_sizes.size();
    }
    TW_CHECK(shares_.empty() || shares_.size() >= tensors_);
    threads_ = threads_for(size_, threads);
  }

  void apply(std::span<float> parameters, const MeanGradient& given, std::uint64_t step,
             std::span<const GroupStep> groups) override {
    TW_CHECK(step > 0 && parameters.size() == size_);
    TW_CHECK(groups.size() == 1 || groups.size() == groups_.size());
    if (elsewhere_) held_.hold(given, size_, threads_);
    const MeanGradient mean = elsewhere_ ? held_.mean() : given;
    for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].settings = groups[groups.size() == 1 ? 0 : i];
    spans_.clear();
    take_shares(mean);
    plan(step, mean.samples, parameters.first(shares_.size()));
    const std::optional<float> scale = clipping(mean);
    in_parallel(threads_, mean.parts, [&](std::size_t i) {
      mean.read(i, [&](std::size_t first, std::span<const float> piece) {
        cut(first, piece, [&](const Span& span, std::size_t at, std::span<const float> part) {
          update(span, parameters.subspan(at, part.size()), {at, part, scale});
        });
      });
    });
    if (elsewhere_) return elsewhere_(step, held_.values(), steps());
    in_parallel(threads_, spans_.size(), [&](std::size_t i) {
      const Span& span = spans_[i];
      span.group->rule->finish(span.now, parameters.subspan(span.first, span.size),
                               span.first - span.group->first);
    });
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
    std::vector<std::uint64_t> tensor_sizes;
    OptimizerOptions options;
    std::unique_ptr<UpdateRule> rule;
    GroupStep settings;  // of the step under way

    bool clipped() const { return !averages(options.kind); }
  };

  /// What the values of one tensor in a step depend on.
  struct Turn {
    std::uint64_t step;  ///< of bias corrections
    double gain = 1;     ///< of averages

    bool operator==(const Turn&) const = default;
  };

  /// Consecutive tensors of one group that have a gradient in this step, and take it with the same values.
  struct Span {
    std::size_t first;
    std::size_t size;
    const Group* group;
    Turn turn;
    StepValues now;
  };

  /// Part of the mean that lies in one span.
  struct Part {
    std::size_t first;  // place in the flat vector
    std::span<const float> gradient;
    std::optional<float> scale;
  };

  /// Takes the shares, with which the mean begins.
  void take_shares(const MeanGradient& mean) {
    std::size_t taken = 0;
    for (std::size_t part = 0; taken < shares_.size(); ++part) {
      TW_CHECK(part < mean.parts);
      mean.read(part, [&](std::size_t first, std::span<const float> piece) {
        for (std::size_t i = first; i < std::min(first + piece.size(), shares_.size()); ++i, ++taken)
          shares_[i] = piece[i - first];
      });
    }
  }

  /// The spans of this step. counts: the updates and passes of each tensor before it, to which it adds its
  /// own; empty: each tensor has had all steps.
  void plan(std::uint64_t step, std::uint64_t samples, std::span<float> counts) {
    std::size_t tensor = 0;
    for (const Group& group : groups_) {
      if (group.options.kind == OptimizerKind::updates) continue;
      std::size_t first = group.first;
      for (const std::uint64_t size : group.tensor_sizes) {
        const bool counted = !counts.empty() && has_counts(group.options.kind);
        const std::optional<Turn> turn =
            counted ? count(group.options, shares_[tensor], samples, counts[tensor]) : Turn{step};
        if (counted) ++tensor;
        if (turn) add_span(group, first, size, *turn);
        first += size;
      }
    }
  }

  /// A tensor's turn in a step of so many samples, which its count then includes; nothing: it has none.
  static std::optional<Turn> count(const OptimizerOptions& options, float share, std::uint64_t samples,
                                   float& count) {
    if (options.kind == OptimizerKind::moving_average) {
      const std::uint64_t passes = passes_in(share, samples);
      const Turn turn{1, gain_of(options.momentum, count, passes)};
      count += static_cast<float>(passes);
      return turn;
    }
    if (share <= kLeastShare) return std::nullopt;
    count += 1;
    return Turn{whole(count)};
  }

  /// Codecs round, so whatever is more than 0 is a pass.
  static std::uint64_t passes_in(float share, std::uint64_t samples) {
    const double passes = static_cast<double>(share) * static_cast<double>(samples);
    return passes > 0 ? std::max<std::uint64_t>(1, whole(static_cast<float>(std::floor(passes + 0.5)))) : 0;
  }

  /// So many steps of momentum after `before` others, in units of one step.
  static double gain_of(double momentum, float before, std::uint64_t passes) {
    if (passes <= 1) return 1;
    if (momentum > 0) return std::min(kFarthest, 1 - integer_power(1 - momentum, passes)) / momentum;
    const auto earlier = static_cast<double>(whole(before)), now = static_cast<double>(passes);
    return std::min(kFarthest, now / (earlier + now)) * (earlier + 1);
  }

  /// State comes from others: any value is a count.
  static std::uint64_t whole(float count) {
    constexpr float kMost = 1e15F;
    return static_cast<std::uint64_t>(std::clamp(std::isnan(count) ? 0.0F : count, 0.0F, kMost));
  }

  void add_span(const Group& group, std::size_t first, std::size_t size, const Turn& turn) {
    const bool continues = !spans_.empty() && spans_.back().group == &group && spans_.back().turn == turn &&
                           spans_.back().first + spans_.back().size == first;
    if (continues && !group.rule->goes_by_tensors()) {
      spans_.back().size += size;
      return;
    }
    const std::uint64_t counted = std::max<std::uint64_t>(turn.step, 1);  // without effect on averages
    spans_.push_back({first, size, &group, turn, step_values(counted, group.options, group.settings)});
    spans_.back().now.gain = turn.gain;
  }

  /// visit(span, place, part) for what of the piece lies in each span.
  template <class Visit>
  void cut(std::size_t first, std::span<const float> piece, const Visit& visit) const {
    auto span = std::partition_point(spans_.begin(), spans_.end(),
                                     [&](const Span& s) { return s.first + s.size <= first; });
    const std::size_t end = first + piece.size();
    for (; span != spans_.end() && span->first < end; ++span) {
      const std::size_t from = std::max(first, span->first), to = std::min(end, span->first + span->size);
      if (from < to) visit(*span, from, piece.subspan(from - first, to - from));
    }
  }

  /// What the gradient is multiplied by; nothing where it is short enough.
  std::optional<float> clipping(const MeanGradient& mean) const {
    if (clip_norm_ == 0) return std::nullopt;
    std::vector<SumLanes> squares(mean.parts);
    in_parallel(threads_, mean.parts, [&](std::size_t i) {
      mean.read(i, [&](std::size_t first, std::span<const float> piece) {
        for (const Group& group : groups_) {
          const std::size_t from = std::max(first, group.first);
          const std::size_t to = std::min(first + piece.size(), group.first + group.size);
          if (from < to && group.clipped())
            add_squares(from, piece.subspan(from - first, to - from), squares[i]);
        }
      });
    });
    double sum = 0;  // in the order of the parts
    for (const SumLanes& part : squares) sum += sum_of_lanes(part);
    const double norm = std::sqrt(sum);
    if (norm <= clip_norm_) return std::nullopt;
    return static_cast<float>(clip_norm_ / (norm + 1e-6));
  }

  /// What is left of this update for others.
  std::vector<RuleStep> steps() const {
    std::vector<RuleStep> all;
    for (const Span& span : spans_) {
      const auto& [rate, options, moments, direction, gain] = span.now;
      if (averages(options.kind)) continue;
      all.push_back({.first = span.first,
                     .count = span.size,
                     .kind = options.kind,
                     .nesterov = options.nesterov,
                     .learning_rate = span.now.rate(),
                     .weight_decay = span.now.weight_decay(),
                     .momentum = static_cast<float>(options.momentum),
                     .shrink = span.now.shrink(),
                     .beta1 = moments.beta1,
                     .one_minus_beta1 = moments.one_minus_beta1,
                     .beta2 = moments.beta2,
                     .one_minus_beta2 = moments.one_minus_beta2,
                     .correction1 = direction.correction1,
                     .root_correction2 = direction.root_correction2,
                     .epsilon = direction.epsilon});
    }
    return all;
  }

  void update(const Span& span, std::span<float> parameters, const Part& part) {
    const Group& group = *span.group;
    if (elsewhere_ && !averages(group.options.kind)) {
      if (!part.scale) return;
      for (float& value : held_.values().subspan(part.first, part.gradient.size())) value *= *part.scale;
      return;
    }
    const std::size_t place = part.first - group.first;
    if (!part.scale || !group.clipped()) return group.rule->take(span.now, parameters, place, part.gradient);
    std::array<float, 2048> scaled;  // stays in the first-level cache
    for (std::size_t done = 0; done < part.gradient.size(); done += scaled.size()) {
      const std::size_t size = std::min(scaled.size(), part.gradient.size() - done);
      const auto piece = std::span(scaled).first(size);
      scale_into(*part.scale, part.gradient.subspan(done, size), piece);
      group.rule->take(span.now, parameters.subspan(done, size), place + done, piece);
    }
  }

  double clip_norm_;
  UpdateElsewhere elsewhere_;
  HeldMean held_;  // with elsewhere_: of the step under way
  std::size_t threads_ = 1;
  std::uint64_t size_ = 0;
  std::vector<Group> groups_;
  std::vector<float> shares_;  // of the samples that had a gradient, or passes per sample; empty: all have
  std::size_t tensors_ = 0;    // of groups that have counts
  std::vector<Span> spans_;    // of the step under way
};

}  // namespace

ParameterGroup one_group(const OptimizerOptions& options, std::vector<std::uint64_t> tensor_sizes) {
  const std::uint64_t size = sum_of_sizes(tensor_sizes);
  return {size, std::move(tensor_sizes), options};
}

std::unique_ptr<Optimizer> make_optimizer(const std::vector<ParameterGroup>& groups, double clip_norm,
                                          std::size_t threads, UpdateElsewhere elsewhere) {
  return std::make_unique<GroupedOptimizer>(groups, clip_norm, threads, std::move(elsewhere));
}

}  // namespace tw::train
