// SPDX-License-Identifier: Apache-2.0
#include "sim/scheduler.h"

#include <algorithm>
#include <utility>

namespace tw {

void Scheduler::at(Instant when, std::function<void()> call) {
  heap_.push_back({std::max(when, now_), next_order_++, std::move(call)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool Scheduler::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  Entry entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.when;
  ++events_;
  entry.call();
  return true;
}

void Scheduler::run_until(Instant end) {
  while (!heap_.empty() && heap_.front().when <= end) step();
  now_ = std::max(now_, end);
}

}  // namespace tw
