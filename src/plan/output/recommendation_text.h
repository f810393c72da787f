// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/advise/recommendation.h"
#include "plan/input/job.h"

namespace tw::plan {

/// The table of `tw plan`.
std::string to_text(const Job& job, const Recommendation& plan);

/// Output of `tw plan --json` (docs/planner.md). plan_file: where PLAN.yaml lies.
std::string to_json(const Job& job, const Recommendation& plan, const std::string& plan_file);

/// Data of plan.html (web/plan_page.js), as the inside of an object: the plan as above, and its picture.
std::string page_fields(const Job& job, const Recommendation& plan, const std::string& plan_file,
                        const std::string& svg);

/// The command that launches the plan.
std::string next_command(const Job& job, const Recommendation& plan, const std::string& plan_file);

/// PLAN.yaml, for launching.
std::string to_plan_file(const Job& job, const MarketSpace& market, const Recommendation& plan);

}  // namespace tw::plan
