// SPDX-License-Identifier: Apache-2.0
#include "train/session/meters/counted_network.h"

#include <utility>

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

std::optional<event::Traffic> CountedNetwork::due(Instant now) {
  if (told_at_ && now < *told_at_ + kTellTrafficEvery) return std::nullopt;
  return rest(now);
}

std::optional<event::Traffic> CountedNetwork::rest(Instant now) {
  if (is_told_) return std::nullopt;
  is_told_ = true;
  told_at_ = now;
  event::Traffic traffic;
  traffic.to.assign(bytes_.begin(), bytes_.end());
  for (const auto& [store, use] : stores_) {
    traffic.from.emplace_back(store, use.bytes);
    traffic.asked.emplace_back(store, use.reads);
    if (use.writes == 0) continue;
    traffic.into.emplace_back(store, use.written_bytes);
    traffic.wrote.emplace_back(store, use.writes);
  }
  return traffic;
}

}  // namespace tw::train
