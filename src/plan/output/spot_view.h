// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "plan/advise/spot_policy.h"

namespace tw::plan {

/// One line for a user's own policy (docs/planner.md).
std::string to_json_line(const SpotView& view);

/// Its answer. Errors say what was found and what was expected.
Result<SpotDecision> read_decision(const SpotView& view, const std::string& line);

}  // namespace tw::plan
