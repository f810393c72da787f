// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/virtual/process.h"
#include "world/clock.h"

namespace tw::sim {

/// Virtual time as one process sees it: the scheduler's, plus what this machine's clocks have jumped. Must
/// outlive the scheduler's calls into it.
///
/// now() is a steady clock and never goes back. It may jump forward: when a paused virtual machine resumes,
/// its guest's steady clock has advanced. Wall time may jump both ways (an operator, NTP).
class VirtualClock final : public world::Clock {
 public:
  explicit VirtualClock(Process& process) : process_(process) {}

  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  Instant now() override { return process_.scheduler().now() + jumped_; }

  std::int64_t unix_nanos() override { return (now().time_since_epoch() + wall_jumped_).count(); }

  void at(Instant when, std::function<void()> call) override;

  /// now() goes on by this much, at least 0: timers that are due then fire at once, in order. Never called
  /// from inside a timer.
  void jump(Duration forward);

  /// unix_nanos() alone, in either direction.
  void jump_wall(Duration by) { wall_jumped_ += by; }

 private:
  struct Timer {
    Instant when;  ///< in this clock's time
    std::uint64_t order = 0;
    std::uint32_t generation = 0;  ///< of the call of the scheduler that counts
    std::function<void()> call;    ///< none: the place is free
  };

  void schedule(std::uint32_t place);
  void fire(std::uint32_t place, std::uint32_t generation);

  Process& process_;
  Duration jumped_{}, wall_jumped_{};
  std::vector<Timer> timers_;
  std::vector<std::uint32_t> free_;  ///< places in timers_
  std::uint64_t next_order_ = 0;
};

}  // namespace tw::sim
