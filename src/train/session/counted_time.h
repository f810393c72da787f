// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "world/clock.h"
#include "world/events.h"

namespace tw::train {

/// The time by which a session waits: a clock that is looked at several times a second, of which no more than
/// kLongestStep counts between two looks. When a virtual machine was suspended, its clock was set, or the
/// process stood still (SIGSTOP), the time that nobody lived through is left out: the awaited peer could not
/// answer in it. Loop thread only; the other clock outlives this object.
class CountedTime final : public world::Clock {
 public:
  /// Beyond what a loop thread with much to do is late; the step machines take a step that is later than 1 s
  /// for a stop.
  static constexpr Duration kLongestStep = std::chrono::seconds(2);

  explicit CountedTime(world::Clock& clock) : clock_(clock), looked_at_(clock.now()) {}

  Instant now() override;

  std::int64_t unix_nanos() override { return clock_.unix_nanos(); }

  void at(Instant when, std::function<void()> call) override;

 private:
  world::Clock& clock_;
  Instant looked_at_;    ///< by the other clock
  Duration left_out_{};  ///< how far this one is behind it
};

/// Events leave with the time of the machine's own clock, by which whoever reads a log compares them.
class StampedEvents final : public world::EventSink {
 public:
  StampedEvents(world::Clock& clock, world::EventSink& events) : clock_(clock), events_(events) {}

  void emit(const world::Event& event) override;

 private:
  world::Clock& clock_;
  world::EventSink& events_;
};

}  // namespace tw::train
