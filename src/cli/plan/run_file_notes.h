// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/input/job.h"

namespace tw::cli {

/// Where the run file of a job says something else than its plan: another mode, codec or batch, or rounds
/// that are not the job's samples. Empty without a run file. An error is the run file's own, with the
/// settings of the plan.
Result<std::vector<std::string>> run_file_notes(const plan::Job& planned);

}  // namespace tw::cli
