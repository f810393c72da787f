// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/deployment.h"
#include "launch/engine.h"

namespace tw::launch {

/// Name of the arrays of a run: its peers are their tasks, by number.
std::string slurm_job_name(const Deployment& deployment);

/// From `squeue --json` (OpenAPI v0.0.38 of 22.05, and later versions, which write numbers as objects and
/// states as lists), and a line of JSON for each peer about the files that its job leaves.
Result<std::vector<PeerReport>> slurm_states(const Deployment& deployment, const std::string& squeue,
                                             const std::string& files);

}  // namespace tw::launch
