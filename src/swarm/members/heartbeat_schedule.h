// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace tw::swarm {

/// Heartbeat schedule: which peer gets the next heartbeat, and when. Up to 32 links, each gets one every tick
/// (250 ms); so do all links of the leader and its successor. Else the links take turns in a rota, at most 8
/// in each tick.
class HeartbeatSchedule {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(250);
  static constexpr std::size_t kFewLinks = 32;
  static constexpr std::size_t kEachTick = 8;
  static constexpr std::uint64_t kLongestRota = 128;  // 32 s; beyond 1,024 links more are told in each tick

  explicit HeartbeatSchedule(PeerId self) : self_(self) {}

  void open(PeerId peer);
  void close(PeerId peer);

  /// One tick has passed. Returns the peers that get a heartbeat now, in the order of ids. When the interval
  /// grows beyond what was promised, all get one at once.
  std::vector<PeerId> tick(std::set<PeerId> front);

  /// Time until this peer's next heartbeat (next_ms of a heartbeat); at most twice that when links come up
  /// meanwhile.
  Duration interval(PeerId peer) const;

 private:
  std::uint64_t period() const;
  void make_rota();

  PeerId self_;
  std::set<PeerId> links_;
  std::set<PeerId> front_;
  std::uint64_t tick_ = 0;
  std::uint64_t promised_ = 1;             // the period that peers count on
  std::vector<std::vector<PeerId>> rota_;  // of links_, by tick; empty when they have changed
};

}  // namespace tw::swarm
