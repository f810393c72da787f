// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "world/clock.h"
#include "world/events.h"

namespace tw::train {

/// The time by which a session waits: reads a clock several times a second, and counts at most kLongestStep
/// between two readings. So a suspended virtual machine, a changed clock or SIGSTOP ends no wait: the awaited
/// peer could not answer in that time. Loop thread only; the other clock outlives this object.
class CountedTime final : public world::Clock {
 public:
  /// Longer than the delay of a busy loop thread; the step machines treat a step that is more than 1 s late
  /// as a stop.
  static constexpr Duration kLongestStep = std::chrono::seconds(2);

  explicit CountedTime(world::Clock& clock) : clock_(clock), looked_at_(clock.now()) {}

  Instant now() override;

  std::int64_t unix_nanos() override { return clock_.unix_nanos(); }

  void at(Instant when, std::function<void()> call) override;

 private:
  world::Clock& clock_;
  Instant looked_at_;    ///< time of the other clock
  Duration left_out_{};  ///< total time not counted
};

/// Stamps events with the time of the machine's own clock, so that readers can compare logs.
class StampedEvents final : public world::EventSink {
 public:
  StampedEvents(world::Clock& clock, world::EventSink& events) : clock_(clock), events_(events) {}

  void emit(const world::Event& event) override;

 private:
  world::Clock& clock_;
  world::EventSink& events_;
};

}  // namespace tw::train
