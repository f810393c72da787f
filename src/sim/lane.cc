// SPDX-License-Identifier: Apache-2.0
#include "sim/lane.h"

#include <algorithm>
#include <utility>

namespace tw {

void Lane::push(Instant arrival, std::function<void()> deliver) {
  under_way_.push_back({arrival, std::move(deliver)});
  if (under_way_.size() == 1 && !cut_) schedule();
}

void Lane::cut() {
  cut_ = true;
  ++generation_;
}

void Lane::heal(Duration latency) {
  if (!cut_) return;
  cut_ = false;
  not_before_ = scheduler_.now() + latency;
  if (!under_way_.empty()) schedule();
}

void Lane::clear() {
  under_way_.clear();
  ++generation_;
}

void Lane::schedule() {
  const Instant when = std::max(under_way_.front().arrival, not_before_);
  scheduler_.at(when, [this, generation = ++generation_] {
    if (generation != generation_) return;
    const std::function<void()> deliver = std::move(under_way_.front().deliver);
    under_way_.pop_front();
    if (!under_way_.empty()) schedule();
    deliver();
  });
}

}  // namespace tw
