// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/advise/replan.h"

namespace tw::plan {

/// The plan after the advice: machines added and dropped.
PlanFile changed(PlanFile plan, const Replan& replan);

/// In the format of read_plan.
std::string to_text(const PlanFile& plan);

/// The key `settings` of PLAN.yaml; nothing without settings.
std::string settings_text(const std::vector<std::string>& settings);

}  // namespace tw::plan
