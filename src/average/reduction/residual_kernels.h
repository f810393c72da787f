// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace tw::average {

// Loops that the compiler vectorises. All spans have one length.

/// out = a + b, each sum rounded.
void add_values(std::span<const float> a, std::span<const float> b, std::span<float> out);

/// residual += wanted - samples * sent, each operation rounded.
void add_loss(std::span<const float> wanted, float samples, std::span<const float> sent,
              std::span<float> residual);

}  // namespace tw::average
