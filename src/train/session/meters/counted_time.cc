// SPDX-License-Identifier: Apache-2.0
#include "train/session/meters/counted_time.h"

#include <algorithm>
#include <utility>

namespace tw::train {

Instant CountedTime::now() {
  const Instant now = clock_.now();
  left_out_ += std::max<Duration>(now - looked_at_ - kLongestStep, Duration{});
  looked_at_ = now;
  return now - left_out_;
}

void CountedTime::at(Instant when, std::function<void()> call) {
  clock_.at(when == kNever ? kNever : when + left_out_, std::move(call));
}

void StampedEvents::emit(const world::Event& event) {
  world::Event stamped = event;
  stamped.at = clock_.now();
  events_.emit(stamped);
}

}  // namespace tw::train
