// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::world {

/// Door to randomness.
class Random {
 public:
  virtual ~Random() = default;

  virtual std::uint64_t next() = 0;
};

}  // namespace tw::world
