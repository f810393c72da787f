// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/scenarios/what_if.h"

namespace tw::sim {

/// One object with the numbers of the table (docs/what_if.md), for programs.
std::string to_json(const WhatIf& what, const WhatIfReport& report);

}  // namespace tw::sim
