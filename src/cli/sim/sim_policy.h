// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/sim/sim_what_if.h"
#include "plan/advise/spot_policy.h"

namespace tw::cli {

/// Ours by its name, or the user's: a command.
Result<std::unique_ptr<plan::SpotPolicy>> policy_of(const std::string& text);

/// What a user's program did wrong; ours do nothing wrong. A text that resembles the name of one of ours may
/// have been meant so.
std::optional<Error> trouble_of(const std::string& text, const plan::SpotPolicy& policy);

/// Machines as a spot policy takes them on the trace's market, and what it counts on. An error names the
/// option, the value and what was expected; after trouble of the policy the machines mean nothing.
Status take_policy(const WhatIfArguments& arguments, plan::SpotPolicy& policy, sim::WhatIf& what);

}  // namespace tw::cli
