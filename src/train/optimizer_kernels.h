// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace tw {

/// Loops over flat buffers of one length. Each element takes the same + - * / sqrt in single precision
/// whatever the vector width, and sums have a fixed order, so that the results are the same bits on every
/// machine.

struct NesterovStep {
  float learning_rate;
  float momentum;
  float weight_decay;
};

/// g' = g + weight_decay p; velocity = momentum velocity + g'; p -= learning_rate (g' + momentum velocity).
/// (PyTorch's SGD with nesterov=True, without dampening.)
void nesterov_update(const NesterovStep& step, std::span<float> parameters, std::span<float> velocity,
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
  std::span<const float> m;
  std::span<const float> v;
};

/// p = shrink p - scale direction.
void adam_update(const AdamDirection& direction, const Moments& moments, float shrink, float scale,
                 std::span<float> parameters);

struct SquaredNorms {
  double parameters = 0;
  double update = 0;
};

/// Squared 2-norms of p and of u = direction + weight_decay p, summed in double in 8 lanes (element i in lane
/// i mod 8).
SquaredNorms lamb_norms(const AdamDirection& direction, const Moments& moments, float weight_decay,
                        std::span<const float> parameters);

/// p -= scale u, with u = direction + weight_decay p.
void lamb_update(const AdamDirection& direction, const Moments& moments, float weight_decay, float scale,
                 std::span<float> parameters);

}  // namespace tw
