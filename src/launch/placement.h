// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/deployment.h"
#include "launch/engine_choice.h"
#include "launch/hosts.h"
#include "plan/advise/replan.h"

/// From the groups of a plan to peers, and from one plan of a run to the next. Pure.
namespace tw::launch {

struct PlacementInputs {
  const std::vector<plan::PlannedGroup>& plan;
  const std::vector<PeerJob>& before;  ///< of the run so far
  const std::vector<Host>& hosts;      ///< for the peers of ssh; other engines choose machines
  std::uint32_t next_number = 1;       ///< no peer had it
  std::string barred{};                ///< Host::ssh of one that keeps its peers and gets no new one
  EngineChoice engines{};              ///< without any rule: ssh for all where there are hosts
};

/// The peers of the plan, by number. A peer of before that fits keeps its number, host and restart; an
/// untried one follows its line of the hosts. Others get new numbers. An error: too few hosts for a group.
Result<std::vector<PeerJob>> place(const PlacementInputs& inputs);

/// What turns one list into the other.
struct Difference {
  std::vector<PeerJob> add, drop, keep;
};

Difference difference(const std::vector<PeerJob>& before, const std::vector<PeerJob>& after);

}  // namespace tw::launch
