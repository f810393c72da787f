// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/residual_kernels.h"

#include <cstddef>

#include "base/check.h"

namespace tw::average {

void add_values(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  TW_CHECK(a.size() == out.size() && b.size() == out.size());
  const float* __restrict x = a.data();
  const float* __restrict y = b.data();
  float* __restrict sum = out.data();
  for (std::size_t i = 0; i < out.size(); ++i) sum[i] = x[i] + y[i];
}

void add_loss(std::span<const float> wanted, float samples, std::span<const float> sent,
              std::span<float> residual) {
  TW_CHECK(wanted.size() == residual.size() && sent.size() == residual.size());
  const float* __restrict x = wanted.data();
  const float* __restrict y = sent.data();
  float* __restrict lost = residual.data();
  for (std::size_t i = 0; i < residual.size(); ++i) lost[i] += x[i] - samples * y[i];
}

}  // namespace tw::average
