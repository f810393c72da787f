// SPDX-License-Identifier: Apache-2.0
#include "train/learn/optimizer_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/prng.h"

// Slow twins, one element at a time and without optimisation: the kernels must give the same bits, however
// they are vectorised, for every length and alignment.
#if defined(__GNUC__) && !defined(__clang__)
#define TW_SLOW __attribute__((noinline, optimize("O0")))
#else
#define TW_SLOW __attribute__((noinline))
#endif

namespace tw::train {
namespace {

constexpr MomentumStep kMomentum{0.03F, 0.9F, 0.01F};
constexpr MomentStep kMoments{0.9F, 0.1F, 0.98F, 0.02F};
constexpr AdamDirection kDirection{1.7F, 3.1F, 1e-6F};
constexpr float kWeightDecay = 0.1F;
constexpr float kGain = 4.7F;

struct Buffers {
  std::vector<float> p, m, v, g;

  bool operator==(const Buffers&) const = default;
};

Buffers random_buffers(std::size_t count, std::uint64_t seed) {
  Prng prng(seed);
  Buffers b;
  for (std::size_t i = 0; i < count; ++i) {
    // Over 12 orders of magnitude, so that every rounding counts.
    const auto draw = [&] {
      return static_cast<float>((prng.uniform() - 0.5) * std::exp2(40 * prng.uniform() - 30));
    };
    b.p.push_back(draw());
    b.m.push_back(draw());
    b.v.push_back(std::abs(draw()));
    b.g.push_back(draw());
  }
  return b;
}

TW_SLOW float slow_direction(float m, float v) {
  const float numerator = m * kDirection.correction1;
  const float root = std::sqrt(v) * kDirection.root_correction2;
  const float denominator = root + kDirection.epsilon;
  return numerator / denominator;
}

TW_SLOW void slow_nesterov(Buffers& b, std::size_t i) {
  const float decay = kMomentum.weight_decay * b.p[i];
  const float g = b.g[i] + decay;
  const float kept = kMomentum.momentum * b.m[i];
  b.m[i] = kept + g;
  const float ahead = kMomentum.momentum * b.m[i];
  const float move = kMomentum.learning_rate * (g + ahead);
  b.p[i] = b.p[i] - move;
}

TW_SLOW void slow_momentum(Buffers& b, std::size_t i) {
  const float decay = kMomentum.weight_decay * b.p[i];
  const float g = b.g[i] + decay;
  const float kept = kMomentum.momentum * b.m[i];
  b.m[i] = kept + g;
  const float move = kMomentum.learning_rate * b.m[i];
  b.p[i] = b.p[i] - move;
}

TW_SLOW void slow_gradient(Buffers& b, std::size_t i) {
  const float decay = kWeightDecay * b.p[i];
  const float move = 0.02F * (b.g[i] + decay);
  b.p[i] = b.p[i] - move;
}

TW_SLOW void slow_moments(Buffers& b, std::size_t i) {
  const float m_kept = kMoments.beta1 * b.m[i];
  const float m_new = kMoments.one_minus_beta1 * b.g[i];
  b.m[i] = m_kept + m_new;
  const float v_kept = kMoments.beta2 * b.v[i];
  const float square = b.g[i] * b.g[i];
  const float v_new = kMoments.one_minus_beta2 * square;
  b.v[i] = v_kept + v_new;
}

TW_SLOW void slow_decayed_moments(Buffers& b, std::size_t i) {
  const float g = b.g[i];
  const float decay = kWeightDecay * b.p[i];
  b.g[i] = g + decay;
  slow_moments(b, i);
  b.g[i] = g;
}

TW_SLOW void slow_mean(Buffers& b, std::size_t i) {
  const float move = kGain * b.g[i];
  b.p[i] = b.p[i] + move;
}

TW_SLOW void slow_scale(Buffers& b, std::size_t i) { b.p[i] = 0.3F * b.g[i]; }

TW_SLOW void slow_step(Buffers& b, std::size_t i) {
  const float kept = 0.999F * b.p[i];
  const float move = 0.01F * slow_direction(b.m[i], b.v[i]);
  b.p[i] = kept - move;
}

TW_SLOW void slow_adamw(Buffers& b, std::size_t i) {
  slow_moments(b, i);
  slow_step(b, i);
}

TW_SLOW void slow_adam(Buffers& b, std::size_t i) {
  slow_decayed_moments(b, i);
  slow_step(b, i);
}

TW_SLOW float slow_lamb_direction(const Buffers& b, std::size_t i) {
  const float decay = kWeightDecay * b.p[i];
  return slow_direction(b.m[i], b.v[i]) + decay;
}

TW_SLOW void slow_lamb(Buffers& b, std::size_t i) {
  const float move = 0.02F * slow_lamb_direction(b, i);
  b.p[i] = b.p[i] - move;
}

/// The kernel on all but the first `skip` elements gives what the twin gives; the skipped ones stay.
template <class Kernel, class Twin>
void expect_same_bits(Kernel kernel, Twin twin) {
  for (std::size_t count = 0; count <= 67; ++count) {
    const std::size_t skip = count % 4 <= count ? count % 4 : 0;
    Buffers fast = random_buffers(count, count);
    Buffers slow = fast;
    const auto tail = [skip](std::vector<float>& values) { return std::span(values).subspan(skip); };
    kernel(tail(fast.p), tail(fast.m), tail(fast.v), tail(fast.g));
    for (std::size_t i = skip; i < count; ++i) twin(slow, i);
    ASSERT_EQ(fast, slow) << count << " elements from element " << skip;
  }
}

using Floats = std::span<float>;

TEST(OptimizerKernels, give_the_bits_of_their_slow_twins) {
  expect_same_bits([](Floats p, Floats m, Floats, Floats g) { nesterov_update(kMomentum, p, m, g); },
                   slow_nesterov);
  expect_same_bits([](Floats p, Floats m, Floats, Floats g) { momentum_update(kMomentum, p, m, g); },
                   slow_momentum);
  expect_same_bits([](Floats p, Floats, Floats, Floats g) { gradient_update(0.02F, kWeightDecay, p, g); },
                   slow_gradient);
  expect_same_bits([](Floats, Floats m, Floats v, Floats g) { update_moments(kMoments, m, v, g); },
                   slow_moments);
  expect_same_bits([](Floats p, Floats, Floats, Floats g) { add_mean(kGain, p, g); }, slow_mean);
  expect_same_bits([](Floats p, Floats, Floats, Floats g) { scale_into(0.3F, g, p); }, slow_scale);
}

constexpr AdamStep kAdam{kMoments, kDirection, 0.999F, 0.01F};

AdamVectors vectors(Floats p, Floats m, Floats v, Floats g) {
  return {p.data(), m.data(), v.data(), g.data(), p.size()};
}

TEST(OptimizerKernels, give_the_bits_of_their_slow_twins_on_each_instruction_set) {
  for (const AdamLoops& loops : adam_loops()) {
    SCOPED_TRACE(loops.name);
    expect_same_bits([&](Floats p, Floats m, Floats v, Floats g) { loops.adamw(kAdam, vectors(p, m, v, g)); },
                     slow_adamw);
    expect_same_bits(
        [&](Floats p, Floats m, Floats v, Floats g) { loops.adam(kAdam, kWeightDecay, vectors(p, m, v, g)); },
        slow_adam);
    expect_same_bits([&](Floats p, Floats m, Floats v,
                         Floats g) { loops.lamb(kDirection, kWeightDecay, 0.02F, vectors(p, m, v, g)); },
                     slow_lamb);
  }
}

TEST(OptimizerKernels, are_those_of_the_fastest_instruction_set) {
  expect_same_bits(
      [](Floats p, Floats m, Floats v, Floats g) {
        adamw_update(kAdam, p, {m, v}, g);
      },
      slow_adamw);
  expect_same_bits(
      [](Floats p, Floats m, Floats v, Floats g) {
        adam_update(kAdam, kWeightDecay, p, {m, v}, g);
      },
      slow_adam);
  expect_same_bits(
      [](Floats p, Floats m, Floats v, Floats) {
        lamb_update(kDirection, {m, v}, kWeightDecay, 0.02F, p);
      },
      slow_lamb);
}

TW_SLOW SquaredNorms slow_norms(const Buffers& b) {
  double p[8] = {};
  double u[8] = {};
  for (std::size_t i = 0; i < b.p.size(); ++i) {
    const double x = b.p[i];
    const double y = slow_lamb_direction(b, i);
    p[i % 8] += x * x;
    u[i % 8] += y * y;
  }
  return {((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7])),
          ((u[0] + u[4]) + (u[2] + u[6])) + ((u[1] + u[5]) + (u[3] + u[7]))};
}

TEST(OptimizerKernels, sum_norms_in_a_fixed_order_on_each_instruction_set) {
  for (std::size_t count = 0; count <= 67; ++count) {
    Buffers b = random_buffers(count, count);
    const SquaredNorms expected = slow_norms(b);
    const SquaredNorms norms = lamb_norms(kDirection, {b.m, b.v}, kWeightDecay, b.p);
    ASSERT_EQ(norms.parameters, expected.parameters) << count;
    ASSERT_EQ(norms.update, expected.update) << count;
    for (const AdamLoops& loops : adam_loops()) {
      NormLanes lanes{};
      loops.norms(kDirection, kWeightDecay, vectors(b.p, b.m, b.v, {}), lanes);
      ASSERT_EQ(sum_of_lanes(std::to_array(lanes.parameters)), expected.parameters) << loops.name << count;
      ASSERT_EQ(sum_of_lanes(std::to_array(lanes.update)), expected.update) << loops.name << count;
    }
  }
}

TW_SLOW SumLanes slow_squares(std::span<const float> values) {
  SumLanes lanes{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    lanes[i % 8] += value * value;
  }
  return lanes;
}

TEST(OptimizerKernels, add_squares_in_a_fixed_order_however_the_vector_is_cut) {
  Prng prng(4);
  for (std::size_t count = 0; count <= 67; ++count) {
    const std::vector<float> values = random_buffers(count, count).g;
    SumLanes lanes{};
    for (std::size_t first = 0; first < count;) {
      const std::size_t size = std::min<std::size_t>(count - first, prng.below(30));
      add_squares(first, std::span(values).subspan(first, size), lanes);
      first += size;
    }
    const SumLanes expected = slow_squares(values);
    ASSERT_EQ(lanes, expected) << count;
    const auto& l = expected;
    ASSERT_EQ(sum_of_lanes(lanes), ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7])));
  }
}

}  // namespace
}  // namespace tw::train
