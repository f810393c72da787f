// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Processes that may not link under the id that they use, since another process has it. Bounded, however
/// many ids and processes come and go: the oldest are forgotten first.
class Barred {
 public:
  static constexpr std::size_t kMostSuperseded = 4096;

  /// A record names another process in the place of this one, which is barred for good.
  void supersede(const wire::Member& former);

  /// This process used a member's id with another incarnation: it is barred for some time.
  void turn_away(Instant now, Instant until, const wire::Member& squatter);

  bool bars(Instant now, const wire::Member& process) const;

  /// Number of processes that are remembered.
  std::size_t size() const { return superseded_.size() + turned_away_.size(); }

 private:
  struct Away {
    std::uint64_t incarnation = 0;
    Instant until{};
  };

  std::deque<std::pair<PeerId, std::uint64_t>> superseded_;  // incarnations, the oldest first
  std::map<PeerId, Away> turned_away_;
};

}  // namespace tw::swarm
