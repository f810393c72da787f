// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/prng.h"
#include "train/learn/optimizer.h"

// A slow twin of the whole optimizer, one element after the other and without optimisation. It must give the
// same bits for any groups, options, steps and pieces.
#if defined(__GNUC__) && !defined(__clang__)
#define TW_SLOW_STEP __attribute__((noinline, optimize("O0")))
#else
#define TW_SLOW_STEP __attribute__((noinline))
#endif

namespace tw::train {
namespace {

/// One parameter with its buffers.
struct Cell {
  float parameter = 0;
  float velocity = 0;
  float m = 0;
  float v = 0;
};

struct SlowOptimizer {
  std::vector<ParameterGroup> groups;
  double clip_norm;
  std::vector<Cell> cells;
};

OptimizerOptions options_now(const ParameterGroup& group, const GroupStep& step) {
  OptimizerOptions now = group.options;
  if (step.momentum) now.momentum = *step.momentum;
  if (step.beta1) now.beta1 = *step.beta1;
  if (step.beta2) now.beta2 = *step.beta2;
  if (step.epsilon) now.epsilon = *step.epsilon;
  if (step.weight_decay) now.weight_decay = *step.weight_decay;
  return now;
}

TW_SLOW_STEP float slow_scale_of(const SlowOptimizer& slow, const std::vector<float>& gradient) {
  if (slow.clip_norm == 0) return 1;
  std::array<double, 8> lane{};
  std::size_t place = 0;
  for (const ParameterGroup& group : slow.groups) {
    for (std::uint64_t i = 0; i < group.size; ++i, ++place) {
      const double x = gradient[place];
      const double square = x * x;
      if (!averages(group.options.kind)) lane[place % 8] = lane[place % 8] + square;
    }
  }
  const double sum =
      ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  const double norm = std::sqrt(sum);
  return norm > slow.clip_norm ? static_cast<float>(slow.clip_norm / (norm + 1e-6)) : 1.0F;
}

TW_SLOW_STEP float slow_adam_direction(const Cell& cell, const OptimizerOptions& o, std::uint64_t step) {
  double power1 = 1;
  double power2 = 1;
  double base1 = o.beta1;
  double base2 = o.beta2;
  for (std::uint64_t rest = step; rest > 0; rest /= 2) {
    if (rest % 2 == 1) {
      power1 = power1 * base1;
      power2 = power2 * base2;
    }
    base1 = base1 * base1;
    base2 = base2 * base2;
  }
  const auto correction1 = static_cast<float>(1 / (1 - power1));
  const auto root_correction2 = static_cast<float>(1 / std::sqrt(1 - power2));
  const float above = cell.m * correction1;
  const float root = std::sqrt(cell.v) * root_correction2;
  const float below = root + static_cast<float>(o.epsilon);
  return above / below;
}

TW_SLOW_STEP void slow_sgd_step(Cell& cell, const OptimizerOptions& o, float rate, float g) {
  const auto momentum = static_cast<float>(o.momentum);
  const float decay = static_cast<float>(o.weight_decay) * cell.parameter;
  const float decayed = g + decay;
  float direction = decayed;
  if (o.momentum != 0) {
    const float kept = momentum * cell.velocity;
    cell.velocity = kept + decayed;
    const float ahead = momentum * cell.velocity;
    direction = o.nesterov ? decayed + ahead : cell.velocity;
  }
  const float move = rate * direction;
  cell.parameter = cell.parameter - move;
}

TW_SLOW_STEP void slow_moments_step(Cell& cell, const OptimizerOptions& o, float g) {
  const float m_kept = static_cast<float>(o.beta1) * cell.m;
  const float m_new = static_cast<float>(1 - o.beta1) * g;
  cell.m = m_kept + m_new;
  const float v_kept = static_cast<float>(o.beta2) * cell.v;
  const float square = g * g;
  const float v_new = static_cast<float>(1 - o.beta2) * square;
  cell.v = v_kept + v_new;
}

TW_SLOW_STEP void slow_lamb_step(std::span<Cell> tensor, const OptimizerOptions& o, double rate,
                                 std::uint64_t step) {
  std::vector<float> updates;
  std::array<double, 8> p{};
  std::array<double, 8> u{};
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const float decay = static_cast<float>(o.weight_decay) * tensor[i].parameter;
    updates.push_back(slow_adam_direction(tensor[i], o, step) + decay);
    const double x = tensor[i].parameter;
    const double y = updates[i];
    const double xx = x * x;
    const double yy = y * y;
    p[i % 8] = p[i % 8] + xx;
    u[i % 8] = u[i % 8] + yy;
  }
  const double p_norm = std::sqrt(((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7])));
  const double u_norm = std::sqrt(((u[0] + u[4]) + (u[2] + u[6])) + ((u[1] + u[5]) + (u[3] + u[7])));
  const double trust = p_norm > 0 && u_norm > 0 ? p_norm / u_norm : 1;
  const auto scale = static_cast<float>(rate * trust);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const float move = scale * updates[i];
    tensor[i].parameter = tensor[i].parameter - move;
  }
}

TW_SLOW_STEP void slow_group_step(std::span<Cell> cells, const OptimizerOptions& o, double learning_rate,
                                  std::uint64_t step, const std::vector<float>& gradient) {
  const auto rate = static_cast<float>(learning_rate);
  const auto shrink = static_cast<float>(1 - learning_rate * o.weight_decay);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Cell& cell = cells[i];
    float g = gradient[i];
    if (o.kind == OptimizerKind::average) cell.parameter = cell.parameter + g;
    if (o.kind == OptimizerKind::sgd) slow_sgd_step(cell, o, rate, g);
    if (o.kind == OptimizerKind::lamb) slow_moments_step(cell, o, g);
    if (o.kind != OptimizerKind::adam && o.kind != OptimizerKind::adamw) continue;
    const bool decoupled = o.kind == OptimizerKind::adamw;
    const float decay = static_cast<float>(o.weight_decay) * cell.parameter;
    if (!decoupled) g = g + decay;
    slow_moments_step(cell, o, g);
    const float kept = decoupled ? shrink * cell.parameter : cell.parameter;
    const float move = rate * slow_adam_direction(cell, o, step);
    cell.parameter = kept - move;
  }
}

TW_SLOW_STEP void slow_apply(SlowOptimizer& slow, std::vector<float> gradient, std::uint64_t step,
                             const std::vector<GroupStep>& steps) {
  const float scale = slow_scale_of(slow, gradient);
  std::size_t first = 0;
  for (std::size_t n = 0; n < slow.groups.size(); ++n) {
    const ParameterGroup& group = slow.groups[n];
    const GroupStep& group_step = steps[steps.size() == 1 ? 0 : n];
    const OptimizerOptions o = options_now(group, group_step);
    std::vector<float> own(gradient.begin() + static_cast<long>(first),
                           gradient.begin() + static_cast<long>(first + group.size));
    for (float& g : own) {
      if (!averages(o.kind)) g = scale * g;
    }
    slow_group_step(std::span(slow.cells).subspan(first, group.size), o, group_step.learning_rate, step, own);
    for (const std::uint64_t size : group.tensor_sizes) {
      if (o.kind == OptimizerKind::lamb)
        slow_lamb_step(std::span(slow.cells).subspan(first, size), o, group_step.learning_rate, step);
      first += size;
    }
  }
}

constexpr std::array kEveryKind = {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw,
                                   OptimizerKind::lamb, OptimizerKind::average};

ParameterGroup draw_group(Prng& prng) {
  OptimizerOptions o;
  o.kind = kEveryKind[prng.below(kEveryKind.size())];
  o.momentum = prng.below(3) == 0 ? 0 : prng.uniform();
  o.nesterov = prng.below(2) == 0;
  o.beta1 = prng.below(5) == 0 ? 0 : prng.uniform();
  o.beta2 = 1 - 0.1 * prng.uniform();
  o.epsilon = 1e-8 + 1e-3 * prng.uniform();
  o.weight_decay = prng.below(3) == 0 ? 0 : 0.1 * prng.uniform();
  std::vector<std::uint64_t> tensor_sizes(prng.below(4));
  // Some are longer than what is scaled at once.
  for (std::uint64_t& size : tensor_sizes) size = prng.below(prng.below(8) == 0 ? 5000 : 40);
  return one_group(o, tensor_sizes);
}

GroupStep draw_group_step(Prng& prng, const ParameterGroup& group) {
  GroupStep step{0.1 * prng.uniform()};
  if (prng.below(2) == 0) return step;
  if (group.options.momentum != 0) step.momentum = prng.below(4) == 0 ? 0 : prng.uniform();
  step.beta1 = prng.uniform();
  step.beta2 = 1 - 0.1 * prng.uniform();
  step.epsilon = 1e-8 + 1e-3 * prng.uniform();
  step.weight_decay = 0.1 * prng.uniform();
  return step;
}

/// Over 12 orders of magnitude, so that every rounding counts.
std::vector<float> draw_values(std::size_t count, Prng& prng) {
  std::vector<float> values(count);
  for (float& x : values)
    x = static_cast<float>((prng.uniform() - 0.5) * std::exp2(40 * prng.uniform() - 35));
  return values;
}

/// The gradient in pieces of any length.
MeanGradient in_pieces(const std::vector<float>& gradient, std::uint64_t seed, std::uint64_t samples = 1) {
  return {1,
          [&gradient, seed](std::size_t, const TakePiece& take) {
            Prng prng(seed);
            for (std::size_t first = 0; first < gradient.size();) {
              const std::size_t size = std::min<std::size_t>(gradient.size() - first, prng.below(3000));
              take(first, std::span(gradient).subspan(first, size));
              first += size;
            }
          },
          samples};
}

/// The buffers as the header lays them out.
std::vector<float> slow_state(const SlowOptimizer& slow) {
  std::vector<float> all;
  std::size_t first = 0;
  for (const ParameterGroup& group : slow.groups) {
    const auto append = [&](float Cell::*buffer) {
      for (std::size_t i = first; i < first + group.size; ++i) all.push_back(slow.cells[i].*buffer);
    };
    const OptimizerOptions& o = group.options;
    if (o.kind == OptimizerKind::sgd) {
      if (o.momentum != 0) append(&Cell::velocity);
    } else if (!averages(o.kind)) {
      append(&Cell::m);
      append(&Cell::v);
    }
    first += group.size;
  }
  return all;
}

std::vector<float> state_of(Optimizer& optimizer) {
  std::vector<float> all;
  for (const std::span<float> buffer : optimizer.state()) all.insert(all.end(), buffer.begin(), buffer.end());
  return all;
}

void compare_with_twin(std::uint64_t seed) {
  Prng prng(seed);
  SlowOptimizer slow;
  for (std::uint64_t n = 1 + prng.below(4); n > 0; --n) slow.groups.push_back(draw_group(prng));
  slow.clip_norm = prng.below(2) == 0 ? 0 : 50 * prng.uniform();
  std::size_t size = 0;
  for (const ParameterGroup& group : slow.groups) size += group.size;
  const auto optimizer = make_optimizer(slow.groups, slow.clip_norm);
  std::vector<float> parameters = draw_values(size, prng);
  for (const float x : parameters) slow.cells.push_back({x});
  for (std::uint64_t step = 1 + prng.below(3), last = step + 4; step <= last; ++step) {
    std::vector<GroupStep> steps;
    for (const ParameterGroup& group : slow.groups) steps.push_back(draw_group_step(prng, group));
    if (prng.below(3) == 0) steps = {{.learning_rate = 0.01, .beta1 = 0.8}};
    const std::vector<float> gradient = draw_values(size, prng);
    optimizer->apply(parameters, in_pieces(gradient, seed + step), step, steps);
    slow_apply(slow, gradient, step, steps);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(parameters[i], slow.cells[i].parameter) << "seed " << seed << " step " << step << " at " << i;
    }
    ASSERT_EQ(state_of(*optimizer), slow_state(slow)) << "seed " << seed;
  }
}

TEST(Optimizer, of_several_groups_gives_the_bits_of_its_slow_twin) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    compare_with_twin(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// A tensor with an optimizer of its own, which sees the rounds in which the tensor has a gradient.
struct Alone {
  explicit Alone(const OptimizerOptions& options, std::vector<float> initial)
      : parameters(std::move(initial)),
        optimizer(make_optimizer({one_group(options, {parameters.size()})})) {}

  void step(const std::vector<float>& gradient, std::uint64_t seed) {
    optimizer->apply(parameters, in_pieces(gradient, seed), ++updates, 0.01);
  }

  std::vector<float> parameters;
  std::unique_ptr<Optimizer> optimizer;
  std::uint64_t updates = 0;
};

void leaves_alone_what_has_no_gradient(OptimizerKind kind, std::uint64_t seed) {
  Prng prng(seed);
  const OptimizerOptions options{.kind = kind, .weight_decay = 0.1};
  const std::vector<std::uint64_t> sizes{3, 2500, 7, 1};
  std::vector<ParameterGroup> groups{one_group({.kind = OptimizerKind::updates}, {sizes.size()})};
  groups.push_back(one_group(options, {sizes[0], sizes[1]}));
  groups.push_back(one_group(options, {}));
  groups.push_back(one_group(options, {sizes[2], sizes[3]}));
  std::vector<Alone> alone;
  std::vector<float> parameters(sizes.size());
  for (const std::uint64_t size : sizes) {
    alone.emplace_back(options, draw_values(size, prng));
    const std::vector<float>& added = alone.back().parameters;
    parameters.insert(parameters.end(), added.begin(), added.end());
  }
  const auto optimizer = make_optimizer(groups);
  for (std::uint64_t round = 1; round <= 12; ++round) {
    std::vector<float> mean(sizes.size());
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      const bool has_one = prng.below(3) != 0;
      mean[t] = has_one ? static_cast<float>(0.01 + 0.99 * prng.uniform()) : 0.0F;
      const std::vector<float> gradient =
          has_one ? draw_values(sizes[t], prng) : std::vector<float>(sizes[t]);
      if (has_one) alone[t].step(gradient, seed + round);
      mean.insert(mean.end(), gradient.begin(), gradient.end());
    }
    optimizer->apply(parameters, in_pieces(mean, seed * round), round, 0.01);
  }
  std::vector<float> expected;
  for (const Alone& one : alone) expected.push_back(static_cast<float>(one.updates));
  for (const Alone& one : alone)
    expected.insert(expected.end(), one.parameters.begin(), one.parameters.end());
  ASSERT_EQ(expected, parameters) << "seed " << seed;
}

TEST(Optimizer, leaves_tensors_alone_that_nobody_has_a_gradient_for) {
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::lamb}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      leaves_alone_what_has_no_gradient(kind, seed);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Optimizer, goes_on_from_the_updates_that_a_tensor_had) {
  const OptimizerOptions adam{.kind = OptimizerKind::adam, .weight_decay = 0};
  Alone whole(adam, {1, 2});
  for (std::uint64_t step = 1; step <= 5; ++step) whole.step({0.5F, -1}, step);
  Alone first(adam, {1, 2});
  for (std::uint64_t step = 1; step <= 3; ++step) first.step({0.5F, -1}, step);
  const auto second =
      make_optimizer({one_group({.kind = OptimizerKind::updates}, {1}), one_group(adam, {2})});
  for (std::size_t buffer = 0; buffer < 2; ++buffer)
    std::ranges::copy(first.optimizer->state()[buffer], second->state()[buffer].begin());
  std::vector<float> parameters{3, first.parameters[0], first.parameters[1]};
  for (std::uint64_t round = 1; round <= 2; ++round)
    second->apply(parameters, in_pieces({1, 0.5F, -1}, round), round, 0.01);
  EXPECT_EQ(parameters, (std::vector<float>{5, whole.parameters[0], whole.parameters[1]}));
}

/// Statistics with counts, beside a parameter.
std::vector<ParameterGroup> with_statistics(double momentum, std::vector<std::uint64_t> sizes) {
  return {one_group({.kind = OptimizerKind::updates}, {sizes.size() + 1}),
          one_group({.kind = OptimizerKind::sgd, .momentum = 0}, {1}),
          one_group({.kind = OptimizerKind::moving_average, .momentum = momentum}, std::move(sizes))};
}

TEST(MovingAverage, makes_a_step_for_each_pass_of_the_round) {
  constexpr double kStatistic = 7;
  for (const double momentum : {0.01, 0.1}) {
    const auto optimizer = make_optimizer(with_statistics(momentum, {1, 1}));
    std::vector<float> parameters = {0, 5, 0, 0, 1, 1};
    double once = 1, thrice = 1;
    std::uint64_t passes = 0;
    for (const std::uint64_t now : {1, 2, 6, 12}) {
      constexpr std::uint64_t kSamples = 96;
      const auto share = static_cast<float>(now) / kSamples;
      const auto step_of = [&](double value) { return static_cast<float>(momentum * (kStatistic - value)); };
      // As far from the whole number of passes as codecs bring it.
      const std::vector<float> mean = {0, share * 1.003F, 3 * share * 0.998F,
                                       0, step_of(once),  step_of(thrice)};
      for (std::uint64_t i = 0; i < now; ++i) once += momentum * (kStatistic - once);
      for (std::uint64_t i = 0; i < 3 * now; ++i) thrice += momentum * (kStatistic - thrice);
      passes += now;
      optimizer->apply(parameters, in_pieces(mean, now, kSamples), 1, 0.1);
      EXPECT_NEAR(parameters[4], once, 1e-5) << momentum << ", " << now;
      EXPECT_NEAR(parameters[5], thrice, 1e-5) << momentum << ", " << now;
      EXPECT_EQ(parameters[1], 5 + static_cast<float>(passes));
      EXPECT_EQ(parameters[2], static_cast<float>(3 * passes));
    }
  }
}

TEST(MovingAverage, keeps_a_variance_positive_whatever_the_number_of_passes) {
  for (const double momentum : {1e-4, 0.1, 0.98}) {
    const auto optimizer = make_optimizer(with_statistics(momentum, {1}));
    std::vector<float> parameters = {0, 0, 0, 1};
    for (const float passes : {1.0F, 3.0F, 1e3F, 1e9F}) {
      const float before = parameters[3];
      // A batch without any variance; twice rounded by bf16.
      const float rounded = (1 + 1.0F / 256) * (1 + 1.0F / 256);
      const std::vector<float> mean = {0, passes, 0, static_cast<float>(-momentum) * before * rounded};
      optimizer->apply(parameters, in_pieces(mean, 1), 1, 0.1);
      EXPECT_GT(parameters[3], 0) << momentum << ", " << passes;
      EXPECT_LT(parameters[3], before);
    }
  }
}

TEST(MovingAverage, without_a_momentum_is_the_mean_over_all_passes) {
  const auto optimizer = make_optimizer(with_statistics(0, {1}));
  std::vector<float> parameters = {0, 3, 0, 10};
  double sum = 3 * 10, passes = 3;
  for (const std::uint64_t now : {4, 1, 7}) {
    const auto statistic = static_cast<double>(now * now);
    sum += static_cast<double>(now) * statistic;
    passes += static_cast<double>(now);
    const double step = (statistic - parameters[3]) / (parameters[1] + 1.0);
    const std::vector<float> mean = {0, static_cast<float>(now) / 32, 0, static_cast<float>(step)};
    optimizer->apply(parameters, in_pieces(mean, now, 32), 1, 0.1);
    EXPECT_NEAR(parameters[3], sum / passes, 1e-3);
  }
}

TEST(MovingAverage, that_nobody_counted_is_an_average) {
  const auto optimizer = make_optimizer(with_statistics(0.1, {2}));
  std::vector<float> parameters = {0, 3, 0, 1, 2};
  optimizer->apply(parameters, in_pieces({0, 0, 0, 0.5F, -0.25F}, 1, 16), 1, 0.1);
  EXPECT_EQ(parameters, (std::vector<float>{0, 3, 0, 1.5F, 1.75F}));
}

TEST(Optimizer, asks_for_the_mean_once_and_twice_where_its_norm_has_a_limit) {
  for (const double clip_norm : {0.0, 1.0}) {
    int asked = 0;
    const std::vector<float> gradient = {3, 4};
    std::vector<float> parameters = {0, 0};
    const auto counted = [&](std::size_t, const TakePiece& take) {
      ++asked;
      take(0, gradient);
    };
    make_optimizer({one_group({}, {2})}, clip_norm)->apply(parameters, {1, counted}, 1, 0.1);
    EXPECT_EQ(asked, clip_norm == 0 ? 1 : 2);
  }
}

TEST(Optimizer, clips_neither_averages_nor_a_mean_that_is_short_enough) {
  const OptimizerOptions sgd{.kind = OptimizerKind::sgd, .momentum = 0, .weight_decay = 0};
  const std::vector<ParameterGroup> groups = {one_group(sgd, {2}),
                                              one_group({.kind = OptimizerKind::average}, {1})};
  const std::vector<float> gradient = {3, 4, 100};
  for (const double clip_norm : {5.0, 2.5}) {
    std::vector<float> parameters = {0, 0, 0};
    make_optimizer(groups, clip_norm)->apply(parameters, in_pieces(gradient, 1), 1, 1.0);
    const float share = clip_norm == 5 ? 1 : 0.5F;
    EXPECT_NEAR(parameters[0], -3 * share, 1e-6) << clip_norm;
    EXPECT_NEAR(parameters[1], -4 * share, 1e-6) << clip_norm;
    EXPECT_EQ(parameters[2], 100) << clip_norm;
  }
}

}  // namespace
}  // namespace tw::train
