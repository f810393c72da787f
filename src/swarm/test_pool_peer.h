// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "swarm/swarm.h"

namespace tw::swarm {

/// A swarm of a Pool (swarm/test_swarm.h), and what it did.
struct PoolPeer {
  std::unique_ptr<Swarm> swarm;
  Duration microbatch_takes = std::chrono::milliseconds(150);
  bool alive = true;
  bool stopped = false;                 ///< as by SIGSTOP: lives, does nothing
  std::vector<wire::Record> applied{};  ///< in the order in which it applied them
  std::vector<std::string> catch_ups{};
  std::vector<std::string> ends{};
  std::vector<world::Event> events{};
  std::optional<WorkItem> computing{};
  Instant computed_at{};
  std::optional<wire::Plan> plan{};
  std::vector<PeerId> closed{};  ///< closed links that it was not told of yet
  Instant begins_at = kNever;    ///< when the state of others will be here
  Instant handed_at = kNever;    ///< when its sums will be on their way to a custodian
};

}  // namespace tw::swarm
