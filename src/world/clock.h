// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/time.h"

namespace tw::world {

/// Door to time. All calls and all timers on the loop thread.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual Instant now() = 0;

  /// Wall time in nanoseconds since 1970, for logs only.
  virtual std::int64_t unix_nanos() = 0;

  /// Calls once at the given time; if it has passed, at once, but never from inside this call.
  virtual void at(Instant when, std::function<void()> call) = 0;
};

}  // namespace tw::world
