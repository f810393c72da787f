// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/rarely.h"
#include "base/time.h"
#include "swarm/ballots/share_rules.h"
#include "swarm/leases/lease_book.h"
#include "wire/record.h"

namespace tw::swarm {

/// A commit that no heartbeat confirms is believed so long: several ticks and a slow path.
inline constexpr Duration kCommitAlone = std::chrono::seconds(2);

/// What a Swarm is told when it is made.
struct SwarmOptions {
  wire::Member self;
  Digest run;
  bool anchor = false;   ///< its machine stays: it goes before others in the records that it makes
  bool founder = false;  ///< begins the history when wait_for peers are there
  /// Peers begin with parameters of their own, and all but the founder take its state.
  bool founders_parameters = false;
  bool returns = false;  ///< the run had begun before: a founder that begins nothing before go_on_alone()
  std::uint32_t wait_for = 1;
  std::vector<std::string> bootstrap;  ///< addresses to dial when nobody is linked
  LeaseBook::Options lease;
  std::uint64_t segments = 0;
  std::uint64_t grain = 1;  ///< microbatches that this peer does at once, at first
  Round rounds = 0;
  Duration patience{};
  ShareRules shares;
  std::uint64_t sum_bytes = 0;  ///< of a gradient sum as a peer that leaves hands it over
  Rarely rarely{};
};

}  // namespace tw::swarm
