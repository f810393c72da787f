// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments/launch_arguments.h"
#include "launch/engine.h"
#include "launch/placement.h"
#include "launch/run_store.h"
#include "train/run/program.h"

/// From what the user wrote after `tw up` to the state that the run is to have. Every error names the option
/// or the file.
namespace tw::cli {

/// Contents of the files that the command line of a launch names.
struct LaunchRequest {
  plan::PlanFile plan;
  std::string plan_file;  ///< absolute
  std::string job_file;   ///< absolute; empty: not known
  std::string run_file;   ///< absolute
  std::string name;
  train::ProgramOptions program{};
  bool has_checkpoints = true;
  std::vector<launch::Host> hosts;
  launch::EngineChoice engines;
  std::map<std::string, std::string> with;  ///< settings of the engines
};

Result<LaunchRequest> read_request(const UpArguments& arguments);

/// Adds address and port of this machine for each new peer that runs here.
Result<std::vector<launch::PeerJob>> with_addresses(const LaunchRequest& request,
                                                    std::vector<launch::PeerJob> peers);

/// The state with the peers of this plan. before: the present state; peers that fit stay. Ports and the
/// program are set; tokens are not.
Result<launch::RunState> wanted_state(const UpArguments& arguments, const LaunchRequest& request,
                                      const launch::RunStore& store);

}  // namespace tw::cli
