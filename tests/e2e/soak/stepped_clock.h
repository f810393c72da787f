// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::soak {

/// What clock_shift.so adds to the clocks of a process: the content of a file that both map.
struct ClockShift {
  std::atomic<std::int64_t> monotonic_ns;
  std::atomic<std::int64_t> wall_ns;
};

static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// The clocks of one process, which can be stepped while it runs, as a virtual machine finds them that was
/// suspended (monotonic) or whose time was set (wall). The kernel has no such step for one process alone, so
/// clock_gettime is replaced in it (LD_PRELOAD); timers of the kernel go on as they were.
class SteppedClock {
 public:
  explicit SteppedClock(std::string file);
  ~SteppedClock();
  SteppedClock(const SteppedClock&) = delete;
  SteppedClock& operator=(const SteppedClock&) = delete;

  /// Sanitizers want to be the first to replace functions: their builds leave the clocks as they are.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kCanStep = false;
#else
  static constexpr bool kCanStep = true;
#endif

  /// Words in front of the command.
  std::vector<std::string> enter() const;

  /// Forwards alone: no kernel turns a monotonic clock back.
  void step_monotonic(std::chrono::nanoseconds by) { shift_->monotonic_ns += by.count(); }

  void step_wall(std::chrono::nanoseconds by) { shift_->wall_ns += by.count(); }

 private:
  std::string file_;
  ClockShift* shift_;
};

}  // namespace tw::soak
