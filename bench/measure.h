// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "host/system/cpu_time.h"

/// Clocks and statistics of the benchmarks.
namespace tw::bench {

/// The same time line in all processes of a machine.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tw::bench
