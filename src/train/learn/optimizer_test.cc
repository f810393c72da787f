// SPDX-License-Identifier: Apache-2.0
#include "train/learn/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "base/prng.h"

namespace tw::train {
namespace {

constexpr std::size_t kSize = 5;
using Row = std::array<double, kSize>;

constexpr std::array<float, kSize> kStart = {0.5F, -1.25F, 2.0F, 0.0F, -0.75F};
constexpr std::array<std::array<float, kSize>, 3> kGradients = {
    {{0.1F, -0.2F, 0.3F, 0.4F, -0.5F}, {-0.3F, 0.05F, 0.7F, -0.1F, 0.2F}, {1e-3F, 2.0F, -0.4F, 0.25F, 0.0F}}};
constexpr std::array<double, 3> kLearningRates = {0.1, 0.05, 0.2};

MeanGradient whole(std::span<const float> gradient) {
  return {1, [gradient](std::size_t, const TakePiece& take) { take(0, gradient); }};
}

/// kStart under the three kGradients gives these parameters after each step.
void expect_steps(const OptimizerOptions& options, const std::array<Row, 3>& expected) {
  const auto optimizer = make_optimizer({one_group(options, {3, 2})});
  std::array<float, kSize> parameters = kStart;
  for (std::size_t step = 0; step < expected.size(); ++step) {
    optimizer->apply(parameters, whole(kGradients[step]), step + 1, kLearningRates[step]);
    for (std::size_t i = 0; i < kSize; ++i) {
      EXPECT_NEAR(parameters[i], expected[step][i], 1e-6) << "step " << step + 1 << " element " << i;
    }
  }
}

// The expected values come from PyTorch 1.13 in double precision: torch.optim.SGD(nesterov=True),
// torch.optim.AdamW.

TEST(Sgd, steps_like_pytorch) {
  expect_steps({.kind = OptimizerKind::sgd, .momentum = 0.9, .weight_decay = 0.01},
               {{{0.48005, -1.209625, 1.9392, -0.076, -0.653575},
                 {0.503841453, -1.20461961, 1.85789776, -0.0826278, -0.651400354},
                 {0.534060174, -1.93519996, 1.83964024, -0.219310694, -0.606272741}}});
}

TEST(Sgd, without_momentum_keeps_nothing_but_the_parameters) {
  const OptimizerOptions options{.kind = OptimizerKind::sgd, .momentum = 0, .weight_decay = 0.01};
  EXPECT_TRUE(make_optimizer({one_group(options, {3, 2})})->state().empty());
  std::array<Row, 3> expected{};
  Row x{};
  std::copy(kStart.begin(), kStart.end(), x.begin());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    for (std::size_t i = 0; i < kSize; ++i)
      x[i] -= kLearningRates[step] * (kGradients[step][i] + 0.01 * x[i]);
    expected[step] = x;
  }
  expect_steps(options, expected);
}

TEST(AdamW, steps_like_pytorch) {
  expect_steps(
      {.kind = OptimizerKind::adamw, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = 0.1},
      {{{0.395001, -1.1375005, 1.88000033, -0.09999975, -0.6425002},
        {0.417641066, -1.10823965, 1.82336349, -0.123073184, -0.621947047},
        {0.4853627, -1.20461805, 1.71667542, -0.249462805, -0.555630343}}});
}

/// LAMB as You et al. 2020 write it (algorithm 2), in double precision.
std::vector<Row> lamb_by_the_book(const OptimizerOptions& o, const std::vector<std::size_t>& tensor_sizes) {
  Row x{};
  std::copy(kStart.begin(), kStart.end(), x.begin());
  Row m{};
  Row v{};
  std::vector<Row> history;
  for (std::size_t step = 0; step < kGradients.size(); ++step) {
    Row u{};
    for (std::size_t i = 0; i < kSize; ++i) {
      const double g = kGradients[step][i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(o.beta1, step + 1));
      const double v_hat = v[i] / (1 - std::pow(o.beta2, step + 1));
      u[i] = m_hat / (std::sqrt(v_hat) + o.epsilon) + o.weight_decay * x[i];
    }
    std::size_t first = 0;
    for (const std::size_t size : tensor_sizes) {
      double x_norm = 0;
      double u_norm = 0;
      for (std::size_t i = first; i < first + size; ++i) {
        x_norm = std::hypot(x_norm, x[i]);
        u_norm = std::hypot(u_norm, u[i]);
      }
      for (std::size_t i = first; i < first + size; ++i)
        x[i] -= kLearningRates[step] * x_norm / u_norm * u[i];
      first += size;
    }
    history.push_back(x);
  }
  return history;
}

TEST(Lamb, steps_as_published_with_a_trust_ratio_for_each_tensor) {
  const OptimizerOptions options{
      .kind = OptimizerKind::lamb, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = 0.1};
  const std::vector<Row> expected = lamb_by_the_book(options, {3, 2});
  expect_steps(options, {expected[0], expected[1], expected[2]});
}

TEST(Lamb, moves_a_tensor_that_is_zero) {
  const auto optimizer = make_optimizer({one_group({.kind = OptimizerKind::lamb, .weight_decay = 0}, {2})});
  std::array<float, 2> parameters = {0, 0};
  const std::array<float, 2> gradient = {1, -4};
  optimizer->apply(parameters, whole(gradient), 1, 0.5);
  EXPECT_NEAR(parameters[0], -0.5, 1e-6);
  EXPECT_NEAR(parameters[1], 0.5, 1e-6);
}

std::vector<float> random_values(std::size_t count, Prng& prng) {
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(prng.uniform() - 0.5);
  return values;
}

constexpr std::array<OptimizerOptions, 5> kAllKinds = {{{.kind = OptimizerKind::sgd},
                                                        {.kind = OptimizerKind::sgd, .nesterov = false},
                                                        {.kind = OptimizerKind::adam},
                                                        {.kind = OptimizerKind::adamw},
                                                        {.kind = OptimizerKind::lamb}}};

TEST(Optimizer, goes_on_exactly_when_its_state_is_restored) {
  for (const OptimizerOptions& options : kAllKinds) {
    Prng prng(7);
    const auto first = make_optimizer({one_group(options, {40, 3})});
    std::vector<float> parameters = random_values(43, prng);
    for (std::uint64_t step = 1; step <= 5; ++step)
      first->apply(parameters, whole(random_values(43, prng)), step, 0.01);

    const auto second = make_optimizer({one_group(options, {40, 3})});
    const auto source = first->state();
    const auto target = second->state();
    ASSERT_EQ(source.size(), target.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
      ASSERT_EQ(source[i].size(), 43U);
      std::copy(source[i].begin(), source[i].end(), target[i].begin());
    }
    std::vector<float> copy = parameters;
    const std::vector<float> gradient = random_values(43, prng);
    first->apply(parameters, whole(gradient), 6, 0.01);
    second->apply(copy, whole(gradient), 6, 0.01);
    EXPECT_EQ(parameters, copy) << static_cast<int>(options.kind);
  }
}

TEST(Optimizer, takes_the_same_step_however_the_gradient_is_cut) {
  for (const OptimizerOptions& options : kAllKinds) {
    Prng prng(5);
    const auto one = make_optimizer({one_group(options, {40, 3})}),
               other = make_optimizer({one_group(options, {40, 3})});
    std::vector<float> parameters = random_values(43, prng);
    std::vector<float> copy = parameters;
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const std::vector<float> gradient = random_values(43, prng);
      one->apply(parameters, whole(gradient), step, 0.01);
      const auto cut = [&](std::size_t, const TakePiece& take) {
        for (std::size_t first = 0; first < 43; first += 17)
          take(first, std::span(gradient).subspan(first, std::min<std::size_t>(17, 43 - first)));
      };
      other->apply(copy, {1, cut}, step, 0.01);
    }
    EXPECT_EQ(parameters, copy) << static_cast<int>(options.kind);
  }
}

TEST(Optimizer, takes_the_same_step_on_any_number_of_threads) {
  constexpr std::size_t kMany = 3 * kWorthAThread, kPart = 65536, kCounts = 2;
  for (const OptimizerOptions& options : kAllKinds) {
    const std::vector<ParameterGroup> groups = {one_group({.kind = OptimizerKind::updates}, {kCounts}),
                                                one_group(options, {kMany - 1000, 1000 - kCounts})};
    const auto one = make_optimizer(groups, 1), other = make_optimizer(groups, 1, 3);
    Prng prng(5);
    std::vector<float> parameters = random_values(kMany, prng);
    std::fill_n(parameters.begin(), kCounts, 0.0F);
    std::vector<float> copy = parameters;
    for (std::uint64_t step = 1; step <= 2; ++step) {
      std::vector<float> gradient = random_values(kMany, prng);
      std::fill_n(gradient.begin(), kCounts, 1.0F);
      const auto part = [&](std::size_t i, const TakePiece& take) {
        const std::size_t first = i * kPart;
        take(first, std::span(gradient).subspan(first, std::min(kPart, kMany - first)));
      };
      one->apply(parameters, {kMany / kPart, part}, step, 0.01);
      other->apply(copy, {kMany / kPart, part}, step, 0.01);
    }
    EXPECT_TRUE(parameters == copy) << static_cast<int>(options.kind);
    EXPECT_EQ(parameters[0], 2);
  }
}

TEST(Optimizer, lowers_a_quadratic) {
  for (OptimizerOptions options : kAllKinds) {
    options.weight_decay = 0;
    Prng prng(3);
    std::vector<float> x = random_values(100, prng);
    const std::vector<float> goal = random_values(100, prng);
    const auto distance = [&] {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - goal[i]) * (x[i] - goal[i]);
      return sum;
    };
    const double before = distance();
    const auto optimizer = make_optimizer({one_group(options, {60, 40})});
    for (std::uint64_t step = 1; step <= 200; ++step) {
      std::vector<float> gradient(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) gradient[i] = x[i] - goal[i];
      optimizer->apply(x, whole(gradient), step, 0.01);
    }
    EXPECT_LT(distance(), before / 20) << static_cast<int>(options.kind);
  }
}

}  // namespace
}  // namespace tw::train
