// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/advise/replan.h"

namespace tw::plan {

/// The plan with what is advised: machines added and dropped.
PlanFile changed(PlanFile plan, const Replan& replan);

/// As read_plan reads it.
std::string to_text(const PlanFile& plan);

}  // namespace tw::plan
