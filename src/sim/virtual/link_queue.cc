// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/link_queue.h"

#include <algorithm>
#include <utility>

namespace tw::sim {

std::uint32_t UnderWay::add(Instant arrival, Call deliver) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(items_.size()));
    items_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  items_[place] = {arrival, std::move(deliver), kNone};
  return place;
}

UnderWay::Item UnderWay::take(std::uint32_t place) {
  free_.push_back(place);
  return std::move(items_[place]);
}

void LinkQueue::push(Instant arrival, Call deliver) {
  const bool was_empty = empty();
  const std::uint32_t added = under_way_.add(arrival, std::move(deliver));
  (was_empty ? first_ : under_way_.at(last_).next) = added;
  last_ = added;
  if (was_empty && !cut_) schedule();
}

void LinkQueue::push_overtaking(Instant arrival, Call deliver) {
  if (!empty()) std::swap(under_way_.at(last_).deliver, deliver);
  push(arrival, std::move(deliver));
}

void LinkQueue::cut() {
  cut_ = true;
  ++generation_;
}

void LinkQueue::heal(Duration latency) {
  if (!cut_) return;
  cut_ = false;
  not_before_ = scheduler_.now() + latency;
  if (!empty()) schedule();
}

void LinkQueue::clear() {
  while (!empty()) first_ = under_way_.take(first_).next;
  ++generation_;
}

void LinkQueue::schedule() {
  const Instant when = std::max(under_way_.at(first_).arrival, not_before_);
  scheduler_.at(when, [this, generation = ++generation_] { arrive(generation); });
}

void LinkQueue::arrive(std::uint32_t generation) {
  if (generation != generation_) return;
  UnderWay::Item item = under_way_.take(first_);
  first_ = item.next;
  if (!empty()) schedule();
  item.deliver();
}

}  // namespace tw::sim
