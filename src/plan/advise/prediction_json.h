// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/model/cost.h"

namespace tw::plan {

/// One object; `ranges` repeats the numbers' names with [low, high].
std::string to_json(const Prediction& prediction, const Cost& cost);

}  // namespace tw::plan
