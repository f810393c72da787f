// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/scheduler.h"

#include <algorithm>
#include <utility>

namespace tw::sim {

void Scheduler::at(Instant when, Call call) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(calls_.size()));
    calls_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  calls_[place] = std::move(call);
  heap_.push_back({std::max(when, now_), next_order_++, place});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool Scheduler::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const Entry entry = heap_.back();
  heap_.pop_back();
  Call call = std::move(calls_[entry.place]);
  free_.push_back(entry.place);
  now_ = entry.when;
  ++events_;
  call();
  return true;
}

void Scheduler::run_until(Instant end) {
  while (!heap_.empty() && heap_.front().when <= end) step();
  now_ = std::max(now_, end);
}

}  // namespace tw::sim
