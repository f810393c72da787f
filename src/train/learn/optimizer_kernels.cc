// SPDX-License-Identifier: Apache-2.0
#include "train/learn/optimizer_kernels.h"

#include <algorithm>

#include "base/check.h"
#include "base/cpu_features.h"
#include "train/learn/optimizer_loops.h"

namespace tw::train {
namespace {

constexpr std::size_t kLanes = SumLanes{}.size();
static_assert(kLanes == kNormLanes);

const AdamLoops& fastest_loops() {
  static const AdamLoops loops = adam_loops().back();
  return loops;
}

AdamVectors vectors_of(std::span<float> parameters, const Moments& moments, std::span<const float> gradient) {
  TW_CHECK(moments.m.size() == parameters.size() && moments.v.size() == parameters.size());
  return {parameters.data(), moments.m.data(), moments.v.data(), gradient.data(), parameters.size()};
}

SumLanes lanes_of(const double (&lanes)[kNormLanes]) {
  SumLanes sums;
  std::copy_n(lanes, kNormLanes, sums.begin());
  return sums;
}

}  // namespace

std::vector<AdamLoops> adam_loops() {
  std::vector<AdamLoops> sets = {loops_of("portable")};
#if defined(__x86_64__)
  if (cpu_features().avx2) sets.push_back(avx2_adam_loops());
#endif
  return sets;
}

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

void adamw_update(const AdamStep& step, std::span<float> parameters, const Moments& moments,
                  std::span<const float> gradient) {
  TW_CHECK(gradient.size() == parameters.size());
  fastest_loops().adamw(step, vectors_of(parameters, moments, gradient));
}

void adam_update(const AdamStep& step, float weight_decay, std::span<float> parameters,
                 const Moments& moments, std::span<const float> gradient) {
  TW_CHECK(gradient.size() == parameters.size());
  fastest_loops().adam(step, weight_decay, vectors_of(parameters, moments, gradient));
}

SquaredNorms lamb_norms(const AdamDirection& direction, const Moments& moments, float weight_decay,
                        std::span<float> parameters) {
  NormLanes lanes{};
  fastest_loops().norms(direction, weight_decay, vectors_of(parameters, moments, {}), lanes);
  return {sum_of_lanes(lanes_of(lanes.parameters)), sum_of_lanes(lanes_of(lanes.update))};
}

void lamb_update(const AdamDirection& direction, const Moments& moments, float weight_decay, float scale,
                 std::span<float> parameters) {
  fastest_loops().lamb(direction, weight_decay, scale, vectors_of(parameters, moments, {}));
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
