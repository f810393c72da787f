// SPDX-License-Identifier: Apache-2.0
#include "swarm/leases/holdback.h"

#include <algorithm>

#include "base/check.h"

namespace tw::swarm {

void Holdback::heard(Instant now, PeerId peer, const wire::Heartbeat& told) {
  const wire::CatchingUp& by_its_word = told.catching_up;
  const auto known = joiners_.find(peer);
  const bool begins = known != joiners_.end() && known->second.begins;
  const bool has_none =
      told.peer_state == wire::PeerState::syncing || (begins && told.peer_state == wire::PeerState::fresh);
  if (!has_none || (!begins && by_its_word.lost_ground < kLostGround)) {
    joiners_.erase(peer);
    return;
  }
  const auto [entry, first] = joiners_.try_emplace(peer);
  Joiner& joiner = entry->second;
  if (first || by_its_word.pieces > joiner.pieces) joiner.moved_at = now;
  joiner.pieces = by_its_word.pieces;
  joiner.presence = told.presence;
}

void Holdback::step(Instant now) {
  TW_CHECK(since_ == kNever || since_ <= now);
  for (auto& [peer, joiner] : joiners_) joiner.still = now - joiner.moved_at >= kStill;
  const auto waits = [](const auto& entry) { return entry.second.is_waited_for(); };
  if (since_ != kNever && now - since_ >= kLongest) {
    for (auto& [peer, joiner] : joiners_) joiner.had_its_time = true;
  }
  const bool wanted = std::ranges::any_of(joiners_, waits);
  if (since_ != kNever && !wanted) {
    not_before_ = now + (now - since_);
    since_ = kNever;
  }
  if (since_ == kNever && wanted && now >= not_before_) since_ = now;
}

std::vector<PeerId> Holdback::peers() const {
  std::vector<PeerId> peers;
  if (since_ == kNever) return peers;
  for (const auto& [peer, joiner] : joiners_) {
    if (joiner.is_waited_for()) peers.push_back(peer);
  }
  return peers;
}

}  // namespace tw::swarm
