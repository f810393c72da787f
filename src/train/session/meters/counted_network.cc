// SPDX-License-Identifier: Apache-2.0
#include "train/session/meters/counted_network.h"

#include <utility>

#include "world/event_table.h"

namespace tw::train {
namespace {

constexpr Duration kTellTrafficEvery = std::chrono::seconds(10);

}  // namespace

void CountedNetwork::handed(PeerId to, const Frame& message) {
  const auto found = sites_.find(to);
  if (found == sites_.end()) return;
  const bool is_known = bytes_.contains(found->second) || bytes_.size() < kMostSites;
  bytes_[is_known ? found->second : ""] += message.head.size() + message.payload.size();
  is_told_ = false;
}

void CountedNetwork::send(PeerId to, Frame message) {
  handed(to, message);
  network_.send(to, std::move(message));
}

void CountedNetwork::close(PeerId peer) {
  closed(peer);
  network_.close(peer);
}

void CountedNetwork::asked(const world::StoreUses& uses) {
  if (uses.empty() || uses == stores_) return;
  stores_ = uses;
  is_told_ = false;
}

std::optional<world::Event> CountedNetwork::due(Instant now, Round round) {
  if (told_at_ && now < *told_at_ + kTellTrafficEvery) return std::nullopt;
  return rest(now, round);
}

std::optional<world::Event> CountedNetwork::rest(Instant now, Round round) {
  if (is_told_) return std::nullopt;
  is_told_ = true;
  told_at_ = now;
  world::Event event{now, world::Phase::traffic, round};
  for (const auto& [site, bytes] : bytes_)
    event.numbers.emplace_back(std::string(world::kSentTo) + site, static_cast<double>(bytes));
  for (const auto& [store, use] : stores_) {
    event.numbers.emplace_back(std::string(world::kReadFrom) + store, static_cast<double>(use.bytes));
    event.numbers.emplace_back(std::string(world::kAskedOf) + store, static_cast<double>(use.reads));
    if (use.writes == 0) continue;
    event.numbers.emplace_back(std::string(world::kWrittenTo) + store,
                               static_cast<double>(use.written_bytes));
    event.numbers.emplace_back(std::string(world::kWrote) + store, static_cast<double>(use.writes));
  }
  return event;
}

}  // namespace tw::train
