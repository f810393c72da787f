// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/time.h"
#include "launch/engine.h"

namespace tw::cli {

/// Peers that leave by themselves while others took their places: no plan and no state has them any more.
/// What goes wrong with them is a warning.
class Leavers {
 public:
  /// The engine brings it back no more, and its logs are fetched.
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
