// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/plan/price_sources.h"
#include "plan/advise/recommendation.h"
#include "plan/advise/replan.h"

/// What `tw plan` and `tw replan` read: the job, and the machines that it can choose from.
namespace tw::cli {

struct PlanSources {
  std::string profile;             ///< network rows of tw net probe; empty: the built-in network
  std::vector<std::string> learn;  ///< folders of runs, whose losses correct the lifetimes
  MarketArguments market;
};

void describe_sources(CLI::App& command, PlanSources& sources);

/// With absolute paths. `file` is what the user wrote.
Result<plan::Job> read_job_file(const std::string& file);

/// What there is to choose from for the job of `file`: also the machines of the plan that is followed, if one
/// is. idle_anchors: machines that do not train may be chosen.
Result<plan::MarketSpace> market_for(const std::string& file, const plan::Job& job,
                                     const PlanSources& sources, const std::vector<plan::PlannedGroup>& plan,
                                     bool idle_anchors);

}  // namespace tw::cli
