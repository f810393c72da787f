// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/model/cost.h"

namespace tw::plan {

/// "T4@gcp:us reads 28 Mbit/s while it accumulates, of 6904 Mbit/s that its card carries".
std::string peer_reads_text(const ReadRate& reads);

/// A table for people.
std::string to_text(const Workload& workload, const std::vector<PeerGroup>& peers,
                    const Prediction& prediction, const Cost& cost);

}  // namespace tw::plan
