// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "launch/engine.h"
#include "plan/advise/live_market.h"

namespace tw::launch {

/// Requests for spot machines that the engine has not answered, also those that the plan has given up since.
/// A step machine.
class Asked {
 public:
  void look(const Deployment& deployment, const std::vector<PeerReport>& reports, Instant now);

  /// Zones where a request has waited for longer than a machine takes to start, 10 minutes: since when they
  /// have none.
  std::vector<plan::ZoneSeen> unanswered(Instant now) const;

 private:
  struct Request {
    market::Site site;
    Instant since{};
  };

  std::map<std::uint32_t, Request> requests_;  ///< by peer
  std::map<market::Site, Instant> refused_;    ///< the last request in vain of a plan that has moved away
};

}  // namespace tw::launch
