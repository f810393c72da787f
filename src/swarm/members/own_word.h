// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "wire/bandwidth.h"
#include "wire/link_messages.h"

namespace tw::swarm {

/// Fields that a peer reports about itself.
struct OwnWord {
  double samples_per_s = 0;
  std::uint64_t grain = 1;
  wire::Presence presence = wire::Presence::here;
  wire::Bandwidth bandwidth{};
  wire::CatchingUp catching_up{};
  std::string settings{};  ///< that its program wanted with its last gradient (wire::Record::settings)

  bool is_here() const { return presence == wire::Presence::here; }
};

/// Why a peer should rather not lead; the least one does.
enum class Reluctance : std::uint8_t {
  none,
  may_go,           ///< its machine may be taken away, or it leaves
  does_not_follow,  ///< its thread is away: it does not know the parameters of the next rounds
};

/// Times of these reports.
struct TellingTimes {
  Instant next_tick{};
  Instant told_progress{};
  Instant told_state{};
};

}  // namespace tw::swarm
