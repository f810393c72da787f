// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "measure/doctor/findings.h"

namespace tw::measure {

/// {"hurts": whether any does, "findings": [{"check", "verdict", "text", "remedy"}]}
std::string to_json(const std::vector<Finding>& findings);

}  // namespace tw::measure
