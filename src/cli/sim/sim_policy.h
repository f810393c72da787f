// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/sim/sim_what_if.h"

namespace tw::cli {

/// Machines as a spot policy takes them on the trace's market, and what it counts on. An error names the
/// option, the value and what was expected.
Status take_policy(const WhatIfArguments& arguments, sim::WhatIf& what);

}  // namespace tw::cli
