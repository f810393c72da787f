// SPDX-License-Identifier: Apache-2.0
#include "average/arrivals.h"

#include <algorithm>

namespace tw {

Blob KeptContributions::find(PeerId peer, std::uint32_t slot, std::uint64_t segment) const {
  const auto it = pieces_.find({peer, slot});
  return it == pieces_.end() ? Blob() : it->second[segment];
}

void KeptContributions::put(PeerId peer, std::uint32_t slot, std::uint64_t segment, Blob piece) {
  auto& pieces = pieces_[{peer, slot}];
  const std::uint64_t added = piece.size() + (pieces.empty() ? slot_bytes(segments_) : 0);
  bytes_[peer] += added;
  held_bytes_ += added;
  pieces.resize(segments_);
  pieces[segment] = std::move(piece);
}

std::uint64_t KeptContributions::bytes(PeerId peer) const {
  const auto it = bytes_.find(peer);
  return it == bytes_.end() ? 0 : it->second;
}

bool ReceivedResults::put(PeerId from, const Origin& origin, std::uint64_t segment, Blob result) {
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

}  // namespace tw
