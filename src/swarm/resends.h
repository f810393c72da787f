// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "base/ids.h"
#include "base/time.h"

namespace tw::swarm {

/// When this peer's part of a round is due once more to one that threw away what it had got: it took the
/// state of others, and its state said so. At once for the first time in a round, then after pauses that
/// double from 1 s on, so that a peer whose state alternates costs no line more than a few vectors.
class Resends {
 public:
  /// It was behind, and is no more.
  void ask(Instant now, PeerId peer);

  /// Its link is gone: on a new one it gets everything anyway.
  void forget(PeerId peer) { asked_.erase(peer); }

  /// Nothing of the new round was sent to anybody before.
  void begin_round() { asked_.clear(); }

  /// True, once, when all is due again to this peer. To be asked with each of its heartbeats.
  bool take_due(Instant now, PeerId peer);

  std::size_t size() const { return asked_.size(); }

 private:
  struct Asked {
    bool waits = false;
    Instant next{};  // not again before
    Duration pause{};
  };

  std::map<PeerId, Asked> asked_;
};

}  // namespace tw::swarm
