// SPDX-License-Identifier: Apache-2.0
#include "average/reduction/arrivals.h"

#include <algorithm>

#include "base/check.h"

namespace tw::average {

Blob KeptContributions::find(PeerId peer, std::uint32_t slot, std::uint64_t segment) const {
  TW_CHECK(segment < segments_);
  const auto it = slots_.find({peer, slot});
  return it == slots_.end() ? Blob() : it->second.pieces[segment];
}

bool KeptContributions::has(PeerId peer, std::uint32_t slot, std::uint64_t segment) const {
  const auto it = slots_.find({peer, slot});
  return it != slots_.end() && !it->second.pieces[segment].empty();
}

void KeptContributions::put(PeerId peer, std::uint32_t slot, std::uint64_t segment, Blob piece,
                            double squares) {
  TW_CHECK(!piece.empty() && !has(peer, slot, segment));
  Slot& kept = slots_[{peer, slot}];
  const std::uint64_t added = piece.size() + (kept.pieces.empty() ? slot_bytes(segments_) : 0);
  bytes_[peer] += added;
  held_bytes_ += added;
  kept.pieces.resize(segments_);
  kept.pieces[segment] = std::move(piece);
  kept.squares += squares;
}

double KeptContributions::squares(PeerId peer, std::uint32_t slot) const {
  const auto it = slots_.find({peer, slot});
  return it == slots_.end() ? 0 : it->second.squares;
}

void KeptContributions::drop(PeerId peer) {
  std::erase_if(slots_, [&](const auto& entry) { return entry.first.first == peer; });
  held_bytes_ -= bytes(peer);
  bytes_.erase(peer);
}

std::uint64_t KeptContributions::bytes(PeerId peer) const {
  const auto it = bytes_.find(peer);
  return it == bytes_.end() ? 0 : it->second;
}

void ReceivedResults::drop(PeerId sender) {
  const auto found = latest_.find(sender);
  if (found == latest_.end()) return;
  held_bytes_ -= found->second.bytes;
  latest_.erase(found);
}

bool ReceivedResults::put(PeerId from, const Origin& origin, std::uint64_t segment, Blob result) {
  TW_CHECK(segment < segments_ && !result.empty());
  const auto [it, first] = latest_.try_emplace(from);
  Latest& latest = it->second;
  if (first || latest.set != origin.set) {
    if (!first && origin.plan < latest.plan) return true;
    held_bytes_ -= latest.bytes;
    latest = {origin.plan, origin.set, std::vector<Blob>(segments_), segments_ * sizeof(Blob)};
    held_bytes_ += latest.bytes;
  }
  latest.plan = std::max(latest.plan, origin.plan);
  if (!latest.segments[segment].empty()) return false;
  latest.bytes += result.size();
  held_bytes_ += result.size();
  latest.segments[segment] = std::move(result);
  return true;
}

}  // namespace tw::average
