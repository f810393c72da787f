// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "wire/bandwidth.h"
#include "wire/link_messages.h"

namespace tw::swarm {

/// Fields that a peer reports about itself.
struct OwnWord {
  double samples_per_s = 0;
  std::uint64_t grain = 1;
  bool busy = false;
  wire::Bandwidth bandwidth{};
  wire::CatchingUp catching_up{};
};

/// Times of these reports.
struct TellingTimes {
  Instant next_tick{};
  Instant told_progress{};
  Instant told_state{};
};

}  // namespace tw::swarm
