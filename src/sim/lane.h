// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "sim/scheduler.h"

namespace tw {

/// One direction and priority of a path: what is pushed arrives in that order, each not before its time.
/// While the lane is cut nothing arrives, and nothing is lost. Must outlive the scheduler's calls into it.
class Lane {
 public:
  explicit Lane(Scheduler& scheduler) : scheduler_(scheduler) {}

  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void push(Instant arrival, std::function<void()> deliver);

  void cut();

  /// What was held goes on its way: the first of it needs `latency` from now.
  void heal(Duration latency);

  /// Forgets what is under way.
  void clear();

  bool empty() const { return under_way_.empty(); }

 private:
  struct Item {
    Instant arrival;
    std::function<void()> deliver;
  };

  void schedule();

  Scheduler& scheduler_;
  std::deque<Item> under_way_;
  bool cut_ = false;
  Instant not_before_{};
  std::uint64_t generation_ = 0;  ///< of the scheduled arrival; older ones are void
};

}  // namespace tw
