// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/time.h"
#include "launch/engine.h"

namespace tw::cli {

/// Peers that leave by themselves after others took their places: no plan and no state has them any more.
/// Failures with them are warnings.
class Leavers {
 public:
  /// The engine no longer restarts it, and its logs are fetched.
  void add(const launch::Engine& engine, const launch::Deployment& deployment, const launch::PeerJob& peer,
           Instant now);

  /// Those that have left, or should have, are cleared away: logs, job and token.
  void look(const launch::Engine& engine, const launch::Deployment& deployment, Instant now);

 private:
  struct Leaver {
    launch::PeerJob peer;
    Instant stopped;  ///< at the latest
  };

  std::vector<Leaver> leavers_;
};

}  // namespace tw::cli
