// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "train/learn/optimizer_kernels.h"

// The loops of Adam, AdamW and LAMB, which divide and take roots. One file for each instruction set includes
// this one and is compiled for that set: nothing here may become a shared inline function.
namespace tw::train {
namespace {

// Vectorised only with -fno-math-errno: otherwise each root is followed by a check that may call libm.
inline float direction_at(const AdamDirection& d, float m, float v) {
  return (m * d.correction1) / (__builtin_sqrtf(v) * d.root_correction2 + d.epsilon);
}

void adamw_loop(const AdamStep& step, const AdamVectors& vectors) {
  const MomentStep s = step.moments;
  const AdamDirection d = step.direction;
  const float shrink = step.shrink, scale = step.scale;
  float* __restrict p = vectors.p;
  float* __restrict first = vectors.m;
  float* __restrict second = vectors.v;
  const float* __restrict g = vectors.g;
  for (std::size_t i = 0; i < vectors.count; ++i) {
    const float m = s.beta1 * first[i] + s.one_minus_beta1 * g[i];
    const float v = s.beta2 * second[i] + s.one_minus_beta2 * (g[i] * g[i]);
    first[i] = m;
    second[i] = v;
    p[i] = shrink * p[i] - scale * direction_at(d, m, v);
  }
}

void adam_loop(const AdamStep& step, float weight_decay, const AdamVectors& vectors) {
  const MomentStep s = step.moments;
  const AdamDirection d = step.direction;
  const float shrink = step.shrink, scale = step.scale;
  float* __restrict p = vectors.p;
  float* __restrict first = vectors.m;
  float* __restrict second = vectors.v;
  const float* __restrict g = vectors.g;
  for (std::size_t i = 0; i < vectors.count; ++i) {
    const float decayed = g[i] + weight_decay * p[i];
    const float m = s.beta1 * first[i] + s.one_minus_beta1 * decayed;
    const float v = s.beta2 * second[i] + s.one_minus_beta2 * (decayed * decayed);
    first[i] = m;
    second[i] = v;
    p[i] = shrink * p[i] - scale * direction_at(d, m, v);
  }
}

void lamb_norms_loop(const AdamDirection& direction, float weight_decay, const AdamVectors& vectors,
                     NormLanes& lanes) {
  const AdamDirection d = direction;
  const float* __restrict p = vectors.p;
  const float* __restrict m = vectors.m;
  const float* __restrict v = vectors.v;
  NormLanes sums = lanes;
  const auto add = [&](std::size_t i, std::size_t lane) __attribute__((always_inline)) {
    const double x = p[i];
    const double u = direction_at(d, m[i], v[i]) + weight_decay * p[i];
    sums.parameters[lane] += x * x;
    sums.update[lane] += u * u;
  };
  const std::size_t whole = vectors.count / kNormLanes * kNormLanes;
  for (std::size_t i = 0; i < whole; i += kNormLanes) {
    for (std::size_t lane = 0; lane < kNormLanes; ++lane) add(i + lane, lane);
  }
  for (std::size_t i = whole; i < vectors.count; ++i) add(i, i - whole);
  lanes = sums;
}

void lamb_loop(const AdamDirection& direction, float weight_decay, float scale, const AdamVectors& vectors) {
  const AdamDirection d = direction;
  float* __restrict p = vectors.p;
  const float* __restrict m = vectors.m;
  const float* __restrict v = vectors.v;
  for (std::size_t i = 0; i < vectors.count; ++i)
    p[i] -= scale * (direction_at(d, m[i], v[i]) + weight_decay * p[i]);
}

constexpr AdamLoops loops_of(const char* name) {
  return {name, adamw_loop, adam_loop, lamb_norms_loop, lamb_loop};
}

}  // namespace
}  // namespace tw::train
