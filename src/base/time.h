// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace tw {

using Duration = std::chrono::nanoseconds;

/// The one time line of a process: monotonic in the host, virtual in the simulator. Not wall time.
struct Timeline {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<Timeline>;
};

using Instant = std::chrono::time_point<Timeline>;

inline constexpr Instant kNever = Instant::max();

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

/// Seconds to a Duration; values beyond a century saturate in both directions, and NaN becomes a century.
inline Duration from_seconds(double s) {
  constexpr double kCentury = 3.2e9;
  const double bounded = s < -kCentury ? -kCentury : s < kCentury ? s : kCentury;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(bounded));
}

}  // namespace tw
