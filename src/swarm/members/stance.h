// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

#include "wire/link_messages.h"
#include "wire/swarm_messages.h"

namespace tw::swarm {

/// What a peer said of itself that outlasts a round: it holds for this process until it says otherwise. A
/// peer whose reports take longer than a round would otherwise be unknown in each of them.
struct Stance {
  bool leaving = false;  ///< it never takes that back
  wire::Outlook outlook = wire::Outlook::steady;
  wire::Presence presence = wire::Presence::here;
  wire::Bandwidth bandwidth{};

  void hear(const wire::Heartbeat& told) {
    outlook = told.outlook;
    presence = told.presence;
    leaving = leaving || told.peer_state == wire::PeerState::leaving;
  }

  void hear(const wire::Progress& told) {
    outlook = told.outlook;
    leaving = leaving || told.leaving;
    bandwidth = told.bandwidth;
  }

  bool operator==(const Stance&) const = default;
};

/// The stances of peers. One that said nothing stays, and its thread is here.
class Stances {
 public:
  void hear(PeerId peer, const auto& told) { stances_[peer].hear(told); }

  void forget(PeerId peer) { stances_.erase(peer); }

  const Stance& of(PeerId peer) const {
    static const Stance kNothingSaid;
    const auto found = stances_.find(peer);
    return found == stances_.end() ? kNothingSaid : found->second;
  }

  std::size_t size() const { return stances_.size(); }

 private:
  std::map<PeerId, Stance> stances_;
};

}  // namespace tw::swarm
