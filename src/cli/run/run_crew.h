// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/arguments/run_arguments.h"
#include "launch/local/crew.h"
#include "launch/local/gpus.h"

/// From the arguments of `tw run` to the processes of a crew.
namespace tw::cli {

/// Arguments that were checked.
struct RunPlan {
  RunArguments arguments;  ///< join: addresses alone
  std::uint64_t peers = 1;
  launch::VisibleGpus gpus{};  ///< one for each process; none: processes see all
  std::uint64_t restarts = 0;
  launch::Script script;
  std::uint64_t joins = 0;             ///< of the script
  bool begins = false;                 ///< the crew is all of its run, and its peers count from 1
  std::uint64_t waits_for = SIZE_MAX;  ///< so many peers, before the run begins; SIZE_MAX: all
};

/// Every error names the option.
Result<RunPlan> plan_run(const RunArguments& arguments);

/// folder: for the crew's token and verdicts; it outlives the crew.
Result<launch::Crew::Options> crew_options(const RunPlan& plan, const std::string& folder);

}  // namespace tw::cli
