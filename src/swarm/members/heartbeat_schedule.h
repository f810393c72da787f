// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace tw::swarm {

/// When which peer is told that this one lives. Every tick (250 ms) where there are at most 32 links, and on
/// all links of those in front (the leader and its successor). Else each link has its place in a rota of as
/// many ticks as it takes to tell no more than 8 peers in each of them.
class HeartbeatSchedule {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(250);
  static constexpr std::size_t kFewLinks = 32;
  static constexpr std::size_t kEachTick = 8;
  static constexpr std::uint64_t kLongestRota = 128;  // 32 s; beyond 1,024 links more are told in each tick

  explicit HeartbeatSchedule(PeerId self) : self_(self) {}

  void open(PeerId peer);
  void close(PeerId peer);

  /// One tick has passed. Returns the peers that get a heartbeat now, in the order of ids. A peer that was
  /// promised more than holds from now on gets one at once.
  std::vector<PeerId> tick(std::set<PeerId> front);

  /// That peer is told again after so long, or after twice that when links come up meanwhile; what next_ms
  /// of a heartbeat says.
  Duration interval(PeerId peer) const;

 private:
  std::uint64_t period() const;
  void make_rota();

  PeerId self_;
  std::set<PeerId> links_;
  std::set<PeerId> front_;
  std::uint64_t tick_ = 0;
  std::uint64_t promised_ = 1;             // the period that everybody counts on
  std::vector<std::vector<PeerId>> rota_;  // of links_, by tick; empty when they have changed
};

}  // namespace tw::swarm
