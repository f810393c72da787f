// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "swarm/ballots/test_records.h"
#include "swarm/swarm.h"

namespace tw::swarm {

struct PoolSetup {
  std::uint32_t wait_for = 3;
  LeaseBook::Options lease{64, 4};
  Round rounds = 1000;
  Duration patience = std::chrono::seconds(5);
  std::set<std::uint64_t> anchors{};
  std::set<std::uint64_t> token{};  ///< all peers have the addresses of these; empty: of the founder
};

/// A swarm of a Pool (swarm/test_swarm.h), and what it did.
struct PoolPeer {
  std::unique_ptr<Swarm> swarm;
  Duration microbatch_takes = std::chrono::milliseconds(150);
  bool alive = true;
  bool stopped = false;                 ///< as by SIGSTOP: lives, does nothing
  bool thread_is_away = false;          ///< it neither computes nor applies
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

  /// The update of its last record, if there is one and somebody to do it.
  void apply(Instant now) const {
    if (thread_is_away || applied.empty()) return;
    const wire::Record& last = applied.back();
    swarm->applied(now, last.round, parameters_after(last));
  }
};

}  // namespace tw::swarm
