// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "host/tcp/admission/greeting.h"
#include "world/network.h"

namespace tw::host {

/// Why a peer gets no link: refuse or duplicate, and what the other side is told.
struct Refusal {
  Verdict verdict{};
  world::Refusal why;
};

/// Decides which connection becomes the link. Two peers may dial each other at the same time. Then the
/// connection that reaches admit first at the peer with the smaller id gets its claim and becomes the link.
/// The other peer has no say, so both always agree.
class Reception {
 public:
  Reception(PeerId self, world::NetworkEvents& events) : self_(self), events_(events) {}

  PeerId self() const { return self_; }

  /// Asks the user of the network first, which can distinguish a second link to a peer from a second peer
  /// with that id. Nothing: the peer is accepted, and a claim on its link is held until open or release.
  std::optional<Refusal> admit(PeerId peer, const Frame& hello);

  void release(PeerId peer) { claimed_.erase(peer); }

  /// The claim becomes the link; false when there is a link to this peer already.
  bool open(PeerId peer);

  void close(PeerId peer) { linked_.erase(peer); }

 private:
  PeerId self_;
  world::NetworkEvents& events_;
  std::set<PeerId> claimed_;
  std::set<PeerId> linked_;
};

}  // namespace tw::host
