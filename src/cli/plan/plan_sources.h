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

/// With absolute paths, and with what its run file names of what it leaves open. `file` is what the user
/// wrote.
Result<plan::Job> read_job_file(const std::string& file);

/// What plans of the job of a file are made from, whatever its mode, codec and batch.
struct PlanKnowledge {
  std::string file;  ///< as the user wrote it
  plan::Workload workload;
  std::vector<market::Offer> offers;
  market::NetworkProfile network;
  std::vector<market::Lived> seen;
  bool under_way = false;  ///< MarketInputs::under_way

  plan::Knowledge knowledge() const { return {.network = network}; }
};

/// Also the machines of the plan that is followed, if one is.
Result<PlanKnowledge> knowledge_for(const std::string& file, const plan::Job& job, const PlanSources& sources,
                                    const std::vector<plan::PlannedGroup>& plan);

/// What there is to choose from. idle_anchors: machines that do not train may be chosen.
Result<plan::MarketSpace> market_for(const PlanKnowledge& known, const plan::Job& job, bool idle_anchors);

}  // namespace tw::cli
