// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"
#include "sim/virtual/call.h"

namespace tw::sim {

/// Virtual time: calls happen in the order of (time, order of at()), each at its time, and take none
/// themselves.
class Scheduler {
 public:
  /// A start other than 0, so that code which treats a time of 0 as "never" fails.
  static constexpr Instant kStart = Instant{} + std::chrono::seconds(1000);

  Instant now() const { return now_; }

  /// A time that has passed means now; the call never comes from inside at().
  void at(Instant when, Call call);

  void after(Duration delay, Call call) { at(now_ + delay, std::move(call)); }

  /// Makes the next call; false when there is none.
  bool step();

  /// Makes all calls up to and at `end`; now() is `end` then.
  void run_until(Instant end);

  void run_for(Duration time) { run_until(now_ + time); }

  /// Calls made so far.
  std::uint64_t events() const { return events_; }

 private:
  /// Heap entries are small; calls stay in their place.
  struct Entry {
    Instant when;
    std::uint64_t order;
    std::uint32_t place;  ///< in calls_
  };

  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }

  std::vector<Entry> heap_;
  std::vector<Call> calls_;
  std::vector<std::uint32_t> free_;  ///< places
  Instant now_ = kStart;
  std::uint64_t next_order_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace tw::sim
