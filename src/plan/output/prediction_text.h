// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/model/cost.h"

namespace tw::plan {

/// A table for people.
std::string to_text(const Workload& workload, const std::vector<PeerGroup>& peers,
                    const Prediction& prediction, const Cost& cost);

}  // namespace tw::plan
