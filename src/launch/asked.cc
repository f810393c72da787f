// SPDX-License-Identifier: Apache-2.0
#include "launch/asked.h"

#include "launch/fleet.h"

namespace tw::launch {
namespace {

constexpr Duration kStarts = std::chrono::minutes(10);

}  // namespace

void Asked::look(const Deployment& deployment, const std::vector<PeerReport>& reports, Instant now) {
  std::map<std::uint32_t, Request> waiting;
  for (const auto& [number, request] : requests_) {
    const bool is_wanted = has_peer(deployment.peers, number);
    if (!is_wanted && now - request.since > kStarts) refused_[request.site] = request.since;
    if (is_wanted && report_of(reports, number).state == PeerState::running) refused_.erase(request.site);
  }
  for (const PeerJob& peer : deployment.peers) {
    if (peer.machine.purchase != market::Purchase::spot) continue;
    if (report_of(reports, peer.number).state != PeerState::waiting) continue;
    const auto known = requests_.find(peer.number);
    waiting[peer.number] = known != requests_.end() ? known->second : Request{peer.machine.site, now};
  }
  requests_ = std::move(waiting);
}

std::vector<plan::ZoneSeen> Asked::unanswered(Instant now) const {
  std::map<market::Site, Instant> since = refused_;
  for (const auto& [peer, request] : requests_)
    if (now - request.since > kStarts) since[request.site] = request.since;
  std::vector<plan::ZoneSeen> zones;
  for (const auto& [site, begun] : since) {
    const double age_h = to_seconds(now - begun) / 3600;
    zones.push_back({.site = site, .sight = {.age_h = age_h}, .spells = {}, .refused_h = age_h});
  }
  return zones;
}

}  // namespace tw::launch
