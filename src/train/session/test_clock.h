// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "world/clock.h"

namespace tw::train {

/// For tests: time passes only when a test says so.
class HandClock final : public world::Clock {
 public:
  explicit HandClock(Instant begin = {}) : now_(begin) {}

  Instant now() override { return now_; }

  std::int64_t unix_nanos() override { return 0; }

  void at(Instant when, std::function<void()> call) override { timers_.emplace(when, std::move(call)); }

  std::size_t timers() const { return timers_.size(); }

  /// Timers ring in their order, each at its time, also those that are set meanwhile.
  void run_until(Instant end) {
    while (!timers_.empty() && timers_.begin()->first <= end) {
      auto next = timers_.extract(timers_.begin());
      now_ = std::max(now_, next.key());
      next.mapped()();
    }
    now_ = end;
  }

  /// Time jumps, then all timers ring that were due by then. Those that are set meanwhile wait for the next
  /// call.
  void jump(Duration duration) {
    now_ += duration;
    std::multimap<Instant, std::function<void()>> due;
    while (!timers_.empty() && timers_.begin()->first <= now_) due.insert(timers_.extract(timers_.begin()));
    for (auto& [when, call] : due) call();
  }

 private:
  Instant now_;
  std::multimap<Instant, std::function<void()>> timers_;
};

}  // namespace tw::train
