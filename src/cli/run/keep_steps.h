// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments/launch_arguments.h"
#include "launch/engine.h"
#include "launch/run_store.h"

/// What `tw up --keep` finds out before it acts.
namespace tw::cli {

/// The reports for launch::Restarts: an engine that restarts peers gets a moment to do so.
std::vector<launch::PeerReport> seen_by_the_rules(const launch::Engine& engine,
                                                  const launch::Deployment& deployment,
                                                  std::vector<launch::PeerReport> reports);

/// New peers in place of a leaving one, by the present plan, on other hosts. state: without that peer. Error:
/// no host is free, or the plan needs no other peer.
Result<std::vector<launch::PeerJob>> in_place_of(const UpArguments& given, const launch::PeerJob& gone,
                                                 const launch::RunState& state);

/// PLAN-2.yaml, or the first one after it that is not there.
std::string next_plan_file(const std::string& folder);

}  // namespace tw::cli
