// SPDX-License-Identifier: Apache-2.0
#include "train/learn/optimizer_kernels.h"

#include "base/check.h"

namespace tw::train {
namespace {

constexpr std::size_t kLanes = SumLanes{}.size();

// Vectorised only with -fno-math-errno: otherwise each root is followed by a check that may call libm.
float direction_at(const AdamDirection& d, float m, float v) {
  return (m * d.correction1) / (__builtin_sqrtf(v) * d.root_correction2 + d.epsilon);
}

}  // namespace

void nesterov_update(const MomentumStep& step, std::span<float> parameters, std::span<float> velocity,
                     std::span<const float> gradient) {
  TW_CHECK(velocity.size() == parameters.size() && gradient.size() == parameters.size());
  const MomentumStep s = step;
  float* __restrict p = parameters.data();
  float* __restrict u = velocity.data();
  const float* __restrict g = gradient.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float decayed = g[i] + s.weight_decay * p[i];
    u[i] = s.momentum * u[i] + decayed;
    p[i] -= s.learning_rate * (decayed + s.momentum * u[i]);
  }
}

void momentum_update(const MomentumStep& step, std::span<float> parameters, std::span<float> velocity,
                     std::span<const float> gradient) {
  TW_CHECK(velocity.size() == parameters.size() && gradient.size() == parameters.size());
  const MomentumStep s = step;
  float* __restrict p = parameters.data();
  float* __restrict u = velocity.data();
  const float* __restrict g = gradient.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float decayed = g[i] + s.weight_decay * p[i];
    u[i] = s.momentum * u[i] + decayed;
    p[i] -= s.learning_rate * u[i];
  }
}

void gradient_update(float learning_rate, float weight_decay, std::span<float> parameters,
                     std::span<const float> gradient) {
  TW_CHECK(gradient.size() == parameters.size());
  float* __restrict p = parameters.data();
  const float* __restrict g = gradient.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float decayed = g[i] + weight_decay * p[i];
    p[i] -= learning_rate * decayed;
  }
}

void update_moments(const MomentStep& step, std::span<float> m, std::span<float> v,
                    std::span<const float> gradient) {
  TW_CHECK(v.size() == m.size() && gradient.size() == m.size());
  const MomentStep s = step;
  float* __restrict first = m.data();
  float* __restrict second = v.data();
  const float* __restrict g = gradient.data();
  for (std::size_t i = 0; i < m.size(); ++i) {
    first[i] = s.beta1 * first[i] + s.one_minus_beta1 * g[i];
    second[i] = s.beta2 * second[i] + s.one_minus_beta2 * (g[i] * g[i]);
  }
}

void update_moments(const MomentStep& step, std::span<float> m, std::span<float> v,
                    const DecayedGradient& gradient) {
  TW_CHECK(v.size() == m.size() && gradient.gradient.size() == m.size());
  TW_CHECK(gradient.parameters.size() == m.size());
  const MomentStep s = step;
  const float weight_decay = gradient.weight_decay;
  float* __restrict first = m.data();
  float* __restrict second = v.data();
  const float* __restrict p = gradient.parameters.data();
  const float* __restrict g = gradient.gradient.data();
  for (std::size_t i = 0; i < m.size(); ++i) {
    const float decayed = g[i] + weight_decay * p[i];
    first[i] = s.beta1 * first[i] + s.one_minus_beta1 * decayed;
    second[i] = s.beta2 * second[i] + s.one_minus_beta2 * (decayed * decayed);
  }
}

void adam_update(const AdamDirection& direction, const Moments& moments, float shrink, float scale,
                 std::span<float> parameters) {
  TW_CHECK(moments.m.size() == parameters.size() && moments.v.size() == parameters.size());
  const AdamDirection d = direction;
  float* __restrict p = parameters.data();
  const float* __restrict m = moments.m.data();
  const float* __restrict v = moments.v.data();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    p[i] = shrink * p[i] - scale * direction_at(d, m[i], v[i]);
}

SquaredNorms lamb_norms(const AdamDirection& direction, const Moments& moments, float weight_decay,
                        std::span<const float> parameters) {
  TW_CHECK(moments.m.size() == parameters.size() && moments.v.size() == parameters.size());
  const AdamDirection d = direction;
  const float* __restrict p = parameters.data();
  const float* __restrict m = moments.m.data();
  const float* __restrict v = moments.v.data();
  SumLanes parameter_lanes{};
  SumLanes update_lanes{};
  const auto add = [&](std::size_t i, std::size_t lane) {
    const double x = p[i];
    const double u = direction_at(d, m[i], v[i]) + weight_decay * p[i];
    parameter_lanes[lane] += x * x;
    update_lanes[lane] += u * u;
  };
  const std::size_t whole = parameters.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (std::size_t i = whole; i < parameters.size(); ++i) add(i, i - whole);
  return {sum_of_lanes(parameter_lanes), sum_of_lanes(update_lanes)};
}

void lamb_update(const AdamDirection& direction, const Moments& moments, float weight_decay, float scale,
                 std::span<float> parameters) {
  TW_CHECK(moments.m.size() == parameters.size() && moments.v.size() == parameters.size());
  const AdamDirection d = direction;
  float* __restrict p = parameters.data();
  const float* __restrict m = moments.m.data();
  const float* __restrict v = moments.v.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    p[i] -= scale * (direction_at(d, m[i], v[i]) + weight_decay * p[i]);
  }
}

void add_mean(float gain, std::span<float> parameters, std::span<const float> mean) {
  TW_CHECK(mean.size() == parameters.size());
  float* __restrict p = parameters.data();
  const float* __restrict g = mean.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) p[i] += gain * g[i];
}

void scale_into(float scale, std::span<const float> in, std::span<float> out) {
  TW_CHECK(out.size() == in.size());
  const float* __restrict from = in.data();
  float* __restrict to = out.data();
  for (std::size_t i = 0; i < in.size(); ++i) to[i] = scale * from[i];
}

void add_squares(std::size_t first, std::span<const float> values, SumLanes& lanes) {
  const float* __restrict x = values.data();
  SumLanes sums = lanes;
  const auto add = [&](std::size_t i, std::size_t lane) {
    const double value = x[i];
    sums[lane] += value * value;
  };
  std::size_t i = 0;
  for (; i < values.size() && (first + i) % kLanes != 0; ++i) add(i, (first + i) % kLanes);
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (; i < values.size(); ++i) add(i, (first + i) % kLanes);
  lanes = sums;
}

double sum_of_lanes(const SumLanes& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace tw::train
