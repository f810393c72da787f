// SPDX-License-Identifier: Apache-2.0
#include "monitor/logs/refusal_count.h"

#include <utility>

namespace tw::monitor {
namespace {

constexpr std::size_t kMostWords = 400;

world::Event with_count(world::Event event, std::uint64_t count) {
  if (event.why.size() > kMostWords) event.why.resize(kMostWords);
  std::get<event::Refuse>(event.fact).count = count;
  return event;
}

}  // namespace

std::optional<world::Event> RefusalCount::take(const world::Event& refusal) {
  const event::Cause cause = std::get<event::Refuse>(refusal.fact).cause;
  if (cause == event::Cause::none) return refusal;
  auto& counted = counted_.at(static_cast<std::size_t>(cause));
  if (counted) {
    ++counted->count;
    counted->last = refusal;
    return std::nullopt;
  }
  counted = Counted{refusal.at, 0, {}};
  return with_count(refusal, 1);
}

std::vector<world::Event> RefusalCount::due(Instant now) {
  std::vector<world::Event> told;
  for (auto& counted : counted_) {
    if (!counted || now - counted->told_at < kEvery) continue;
    if (counted->count == 0) {
      counted.reset();
      continue;
    }
    told.push_back(with_count(std::move(counted->last), counted->count));
    counted = Counted{now, 0, {}};
  }
  return told;
}

std::vector<world::Event> RefusalCount::rest() {
  std::vector<world::Event> told;
  for (auto& counted : counted_) {
    if (counted && counted->count > 0) told.push_back(with_count(std::move(counted->last), counted->count));
    counted.reset();
  }
  return told;
}

}  // namespace tw::monitor
