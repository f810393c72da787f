// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments/launch_arguments.h"
#include "cli/plan/launch_plan.h"
#include "launch/engine.h"
#include "launch/fleet.h"
#include "launch/run_store.h"

namespace tw::cli {

struct Launched {
  std::vector<launch::PeerJob> started, stopped;  ///< empty unless all of them were
  std::string trouble;                            ///< what failed, a line each. Empty: nothing
  bool refused = false;   ///< the trouble is with what was asked for: nothing was done
  bool complete = false;  ///< the run had ended: nothing was done. Trouble: what a person has to look at
};

/// For whom a run is launched.
enum class Launcher {
  person,  ///< starts every peer that has ended
  keeper,  ///< `tw up --keep`: not those that need a person
};

/// Brings the run to the wanted state: starts new and ended peers, new ones first, and stops those that are
/// in no plan any more. With dry_run it prints what it would do.
Launched launch_run(const UpArguments& arguments, const LaunchRequest& request, const launch::Engine& engine,
                    launch::RunStore& store, Launcher launcher);

/// launch::start(); the state knows of each start just before it, and forgets those that failed.
launch::Started start_marked(const launch::Engine& engine, launch::RunStore& store,
                             const launch::Deployment& deployment, const std::vector<launch::PeerJob>& peers);

/// "p1 p3".
std::string names_of(const std::vector<launch::PeerJob>& peers);

}  // namespace tw::cli
