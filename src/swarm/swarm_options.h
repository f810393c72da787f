// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/rarely.h"
#include "base/time.h"
#include "swarm/leases/lease_book.h"
#include "swarm/shares/division.h"
#include "wire/record.h"

namespace tw::swarm {

/// A commit that no heartbeat confirms is believed this long: several ticks and a slow path.
inline constexpr Duration kCommitAlone = std::chrono::seconds(2);

/// Options of a Swarm.
struct SwarmOptions {
  wire::Member self;
  Digest run;
  bool anchor = false;   ///< its machine stays: it comes before others in the records that it makes
  bool founder = false;  ///< begins the history when wait_for peers are there
  /// Each peer begins with other parameters, and all but the founder take the founder's state.
  bool founders_parameters = false;
  bool returns = false;  ///< the run had begun before: a founder begins nothing before go_on_alone()
  std::uint32_t wait_for = 1;
  std::vector<std::string> bootstrap;  ///< addresses to dial while no peer is linked there
  LeaseBook::Options lease;
  std::uint64_t segments = 0;
  std::uint64_t grain = 1;  ///< microbatches that this peer computes at once, initially
  Round rounds = 0;
  Duration patience{};
  DivisionOptions division{};
  std::uint64_t sum_bytes = 0;  ///< size of a gradient sum that a leaving peer hands over
  Rarely rarely{};
};

}  // namespace tw::swarm
