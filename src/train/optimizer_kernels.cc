// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer_kernels.h"

#include <array>
#include <cstddef>

#include "base/check.h"

namespace tw {
namespace {

constexpr std::size_t kLanes = 8;

// Vectorised only with -fno-math-errno: otherwise each root is followed by a check that may call libm.
float direction_at(const AdamDirection& d, float m, float v) {
  return (m * d.correction1) / (__builtin_sqrtf(v) * d.root_correction2 + d.epsilon);
}

double sum_of(const std::array<double, kLanes>& lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

}  // namespace

void nesterov_update(const NesterovStep& step, std::span<float> parameters, std::span<float> velocity,
                     std::span<const float> gradient) {
  TW_CHECK(velocity.size() == parameters.size() && gradient.size() == parameters.size());
  const NesterovStep s = step;
  float* __restrict p = parameters.data();
  float* __restrict u = velocity.data();
  const float* __restrict g = gradient.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float decayed = g[i] + s.weight_decay * p[i];
    u[i] = s.momentum * u[i] + decayed;
    p[i] -= s.learning_rate * (decayed + s.momentum * u[i]);
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
  std::array<double, kLanes> parameter_lanes{};
  std::array<double, kLanes> update_lanes{};
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
  return {sum_of(parameter_lanes), sum_of(update_lanes)};
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

}  // namespace tw
