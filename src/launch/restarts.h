// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "launch/engine.h"

namespace tw::launch {

/// Decides which peers `tw up --keep` starts again, and when, on engines that do not. A peer that left on a
/// notice comes back at once; one that fails comes back after 5 s, then after twice as long each time it
/// fails soon, up to 10 minutes. A step machine.
class Restarts {
 public:
  /// Those that are due, by number; each is taken to be started now.
  std::vector<std::uint32_t> step(Instant now, const std::vector<PeerReport>& reports);

 private:
  struct History {
    Instant started{};
    Duration wait{};       ///< before the next start; grows
    Instant due = kNever;  ///< it has ended, and starts then
  };

  void plan_return(Instant now, const PeerReport& report, History& history) const;

  std::map<std::uint32_t, History> peers_;
};

/// How far the reports say that the run has come.
enum class RunEnd {
  none,          ///< a peer lives, may, or comes back
  complete,      ///< no peer lives, and one is done
  needs_person,  ///< the same, or none is done, and one ended so that a person has to look
};

RunEnd end_of(const std::vector<PeerReport>& reports);

/// Those that live, or come back by themselves.
std::vector<PeerJob> coming_peers(const std::vector<PeerJob>& peers, const std::vector<PeerReport>& reports);

/// Deployment::founder. Where it does not come back, or the plan lacks it: the first of the coming ones that
/// was started.
std::uint32_t next_founder(const Deployment& deployment, const std::vector<PeerJob>& coming);

/// Number of the anchor that has a notice while no other one runs or is on its way; 0: none.
std::uint32_t last_anchor_that_goes(const Deployment& deployment, const std::vector<PeerReport>& reports);

}  // namespace tw::launch
