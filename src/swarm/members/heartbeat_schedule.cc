// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/heartbeat_schedule.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tw::swarm {

void HeartbeatSchedule::open(PeerId peer) {
  links_.insert(peer);
  rota_.clear();
}

void HeartbeatSchedule::close(PeerId peer) {
  links_.erase(peer);
  rota_.clear();
}

std::uint64_t HeartbeatSchedule::period() const {
  if (links_.size() <= kFewLinks || front_.contains(self_)) return 1;
  return std::min<std::uint64_t>(kLongestRota, (links_.size() + kEachTick - 1) / kEachTick);
}

void HeartbeatSchedule::make_rota() {
  rota_.assign(period(), {});
  for (PeerId peer : links_) rota_[(peer.value + self_.value) % rota_.size()].push_back(peer);
}

std::vector<PeerId> HeartbeatSchedule::tick(std::set<PeerId> front) {
  ++tick_;
  std::set<PeerId> also = std::exchange(front_, std::move(front));  // they got one at each tick so far
  if (also != front_) rota_.clear();
  const bool broken = period() > 2 * promised_;
  if (broken || period() < promised_) promised_ = period();
  if (period() == 1 || broken) return {links_.begin(), links_.end()};
  if (rota_.empty()) make_rota();
  also.insert(front_.begin(), front_.end());
  std::vector<PeerId> told = rota_[tick_ % rota_.size()];
  std::copy_if(also.begin(), also.end(), std::back_inserter(told),
               [&](PeerId peer) { return links_.contains(peer); });
  std::sort(told.begin(), told.end());
  told.erase(std::unique(told.begin(), told.end()), told.end());
  return told;
}

Duration HeartbeatSchedule::interval(PeerId peer) const {
  return front_.contains(peer) ? kTick : static_cast<std::int64_t>(period()) * kTick;
}

}  // namespace tw::swarm
