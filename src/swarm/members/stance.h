// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/link_messages.h"
#include "wire/swarm_messages.h"

namespace tw::swarm {

/// What a peer said of itself that outlasts a round: it holds for this process until it says otherwise. A
/// peer whose reports take longer than a round would otherwise be unknown in each of them.
struct Stance {
  bool leaving = false;  ///< it never takes that back
  wire::Outlook outlook = wire::Outlook::steady;
  wire::Bandwidth bandwidth{};

  void hear(const wire::Heartbeat& told) {
    outlook = told.outlook;
    leaving = leaving || told.peer_state == wire::PeerState::leaving;
  }

  void hear(const wire::Progress& told) {
    outlook = told.outlook;
    leaving = leaving || told.leaving;
    bandwidth = told.bandwidth;
  }

  bool operator==(const Stance&) const = default;
};

}  // namespace tw::swarm
