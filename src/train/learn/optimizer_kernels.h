// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace tw::train {

/// Loops over flat buffers of one length. Each element takes the same + - * / sqrt in single precision
/// whatever the vector width, and sums have a fixed order, so that the results are the same bits on every
/// machine.

struct MomentumStep {
  float learning_rate;
  float momentum;
  float weight_decay;
};

/// g' = g + weight_decay p; velocity = momentum velocity + g'; p -= learning_rate (g' + momentum velocity).
/// (PyTorch's SGD with nesterov=True, without dampening: there the first velocity is the first gradient, as
/// here after zeros.)
void nesterov_update(const MomentumStep& step, std::span<float> parameters, std::span<float> velocity,
                     std::span<const float> gradient);

/// The same with nesterov=False: p -= learning_rate velocity.
void momentum_update(const MomentumStep& step, std::span<float> parameters, std::span<float> velocity,
                     std::span<const float> gradient);

/// The same without momentum: p -= learning_rate (g + weight_decay p).
void gradient_update(float learning_rate, float weight_decay, std::span<float> parameters,
                     std::span<const float> gradient);

struct MomentStep {
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
};

/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2. (Kingma, Ba 2015.)
void update_moments(const MomentStep& step, std::span<float> m, std::span<float> v,
                    std::span<const float> gradient);

/// The Adam direction is (m correction1) / (sqrt(v) root_correction2 + epsilon), with correction1 = 1 / (1 -
/// beta1^t) and root_correction2 = 1 / sqrt(1 - beta2^t).
struct AdamDirection {
  float correction1;
  float root_correction2;
  float epsilon;
};

struct Moments {
  std::span<float> m;
  std::span<float> v;
};

struct AdamStep {
  MomentStep moments;
  AdamDirection direction;
  float shrink;
  float scale;
};

/// update_moments, then p = shrink p - scale direction: all vectors cross memory once.
void adamw_update(const AdamStep& step, std::span<float> parameters, const Moments& moments,
                  std::span<const float> gradient);

/// The same with the gradient g + weight_decay p.
void adam_update(const AdamStep& step, float weight_decay, std::span<float> parameters,
                 const Moments& moments, std::span<const float> gradient);

struct SquaredNorms {
  double parameters = 0;
  double update = 0;
};

/// Squared 2-norms of p and of u = direction + weight_decay p, summed in double in 8 lanes (element i in lane
/// i mod 8).
SquaredNorms lamb_norms(const AdamDirection& direction, const Moments& moments, float weight_decay,
                        std::span<float> parameters);

/// p -= scale u, with u = direction + weight_decay p.
void lamb_update(const AdamDirection& direction, const Moments& moments, float weight_decay, float scale,
                 std::span<float> parameters);

/// p += gain mean.
void add_mean(float gain, std::span<float> parameters, std::span<const float> mean);

/// out = scale in.
void scale_into(float scale, std::span<const float> in, std::span<float> out);

/// Sums in double that are added up in a fixed order.
using SumLanes = std::array<double, 8>;

/// Adds the squares of values that begin at place `first` of a vector: place i goes into lane i mod 8. The
/// sums do not depend on how the vector is cut, as long as its pieces come in their order.
void add_squares(std::size_t first, std::span<const float> values, SumLanes& lanes);

double sum_of_lanes(const SumLanes& lanes);

// ---- instruction sets

/// One length; g is not for LAMB.
struct AdamVectors {
  float* p;
  float* m;
  float* v;
  const float* g;
  std::size_t count;
};

inline constexpr std::size_t kNormLanes = 8;

struct NormLanes {
  double parameters[kNormLanes];
  double update[kNormLanes];
};

/// What divides and takes roots, compiled for one instruction set; all sets give the same bits. Memory bounds
/// the other loops on any of them.
struct AdamLoops {
  const char* name;
  void (*adamw)(const AdamStep& step, const AdamVectors& vectors);
  void (*adam)(const AdamStep& step, float weight_decay, const AdamVectors& vectors);
  void (*norms)(const AdamDirection& direction, float weight_decay, const AdamVectors& vectors,
                NormLanes& lanes);
  void (*lamb)(const AdamDirection& direction, float weight_decay, float scale, const AdamVectors& vectors);
};

/// Requires AVX2; x86-64 only.
const AdamLoops& avx2_adam_loops();

/// Those that this machine can run, the fastest last: the functions above use that.
std::vector<AdamLoops> adam_loops();

}  // namespace tw::train
