// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/virtual/call.h"
#include "sim/virtual/scheduler.h"

namespace tw::sim {

/// Messages under way on all links of one network: an empty queue takes no memory here.
class UnderWay {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Item {
    Instant arrival;
    Call deliver;
    std::uint32_t next = kNone;
  };

  std::uint32_t add(Instant arrival, Call deliver);
  Item take(std::uint32_t place);

  Item& at(std::uint32_t place) { return items_[place]; }

 private:
  std::vector<Item> items_;
  std::vector<std::uint32_t> free_;
};

/// One direction and priority of a path: messages arrive in the order of pushes, none before its time, except
/// overtaking ones. While the link is cut no message arrives, and none is lost. Must outlive the scheduler's
/// calls into it.
class LinkQueue {
 public:
  LinkQueue(Scheduler& scheduler, UnderWay& under_way) : scheduler_(scheduler), under_way_(under_way) {}

  LinkQueue(const LinkQueue&) = delete;
  LinkQueue& operator=(const LinkQueue&) = delete;

  void push(Instant arrival, Call deliver);

  /// Changes places with what was pushed before it, if that is still under way.
  void push_overtaking(Instant arrival, Call deliver);

  void cut();

  /// Releases held messages: the first one needs `latency` from now.
  void heal(Duration latency);

  /// Drops messages under way.
  void clear();

  bool empty() const { return first_ == UnderWay::kNone; }

 private:
  void schedule();
  void arrive(std::uint32_t generation);

  Scheduler& scheduler_;
  UnderWay& under_way_;
  std::uint32_t first_ = UnderWay::kNone, last_ = UnderWay::kNone;
  std::uint32_t generation_ = 0;  ///< of the scheduled arrival; older ones are void
  bool cut_ = false;
  Instant not_before_{};
};

}  // namespace tw::sim
