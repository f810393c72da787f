// SPDX-License-Identifier: Apache-2.0
#include "launch/asked.h"

#include "launch/fleet.h"

namespace tw::launch {
namespace {

constexpr Duration kStarts = std::chrono::minutes(10);

}  // namespace

void Asked::look(const Deployment& deployment, const std::vector<PeerReport>& reports, Instant now) {
  std::map<std::uint32_t, Request> waiting;
  for (const PeerJob& peer : deployment.peers) {
    if (peer.machine.purchase != market::Purchase::spot) continue;
    if (report_of(reports, peer.number).state != PeerState::waiting) continue;
    const auto known = requests_.find(peer.number);
    waiting[peer.number] = known != requests_.end() ? known->second : Request{peer.machine.site, now};
  }
  requests_ = std::move(waiting);
}

std::vector<plan::ZoneSeen> Asked::unanswered(Instant now) const {
  std::vector<plan::ZoneSeen> zones;
  for (const auto& [peer, request] : requests_)
    if (now - request.since > kStarts)
      zones.push_back({.site = request.site,
                       .sight = {.up = false, .age_h = to_seconds(now - request.since) / 3600},
                       .spells = {}});
  return zones;
}

}  // namespace tw::launch
