// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/scenarios/what_if.h"

namespace tw::sim {

/// One object with the numbers of the table (docs/simulation.md), for programs.
std::string to_json(const WhatIf& what, const WhatIfReport& report);

/// The data of the page of a what-if (web/sim_page.js), as the inside of an object. machines: in words.
std::string page_fields(const WhatIf& what, const WhatIfReport& report, const std::string& machines);

}  // namespace tw::sim
