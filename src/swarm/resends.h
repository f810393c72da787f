// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "base/ids.h"
#include "base/time.h"

namespace tw::swarm {

/// When this peer sends its part of a round again, to a peer that dropped it while taking the state of
/// others. The first resend of a round is immediate. Later pauses double from 1 s, so that a peer whose state
/// alternates costs the link only a few vectors.
class Resends {
 public:
  /// The peer was behind and has caught up.
  void ask(Instant now, PeerId peer);

  /// The peer's link is gone: a new link carries everything anyway.
  void forget(PeerId peer) { asked_.erase(peer); }

  /// A round begins, of which nothing was sent before.
  void begin_round() { asked_.clear(); }

  /// True, once, when everything is due again to this peer. Call it at each of the peer's heartbeats.
  bool take_due(Instant now, PeerId peer);

  std::size_t size() const { return asked_.size(); }

 private:
  struct Asked {
    bool waits = false;
    Instant next{};  // earliest next resend
    Duration pause{};
  };

  std::map<PeerId, Asked> asked_;
};

}  // namespace tw::swarm
