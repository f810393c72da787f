// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/clock.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace tw::sim {

void VirtualClock::at(Instant when, std::function<void()> call) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(timers_.size()));
    timers_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Timer& timer = timers_[place];
  timer.when = when;
  timer.order = next_order_++;
  timer.call = std::move(call);
  schedule(place);
}

void VirtualClock::jump(Duration forward) {
  TW_CHECK(forward >= Duration{});
  jumped_ += forward;
  std::vector<std::uint32_t> pending;
  for (std::uint32_t place = 0; place < timers_.size(); ++place) {
    if (timers_[place].call) pending.push_back(place);
  }
  std::sort(pending.begin(), pending.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::tie(timers_[a].when, timers_[a].order) < std::tie(timers_[b].when, timers_[b].order);
  });
  for (const std::uint32_t place : pending) schedule(place);
}

void VirtualClock::schedule(std::uint32_t place) {
  const Timer& timer = timers_[place];
  const std::uint32_t generation = ++timers_[place].generation;
  const Instant when = timer.when == kNever ? kNever : timer.when - jumped_;
  process_.at(when, [this, place, generation] { fire(place, generation); });
}

void VirtualClock::fire(std::uint32_t place, std::uint32_t generation) {
  if (timers_[place].generation != generation) return;
  const std::function<void()> call = std::exchange(timers_[place].call, nullptr);
  free_.push_back(place);
  call();
}

}  // namespace tw::sim
