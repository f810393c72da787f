// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

namespace tw::average {

/// The values that a peer contributes. In fp32, messages refer to the values instead of holding a copy: each
/// message keeps the owner until it is sent or dropped.
struct GradientSum {
  std::span<const float> values;
  // owners: the gradient slot, and messages under way
  std::shared_ptr<const void> owner{};
};

}  // namespace tw::average
