// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

/// An error that names two runs and a log of each, where logs hold rounds of runs that no other log holds,
/// too. A folder that later runs use again is none: there some log holds rounds of both.
Status check_one_run(const std::vector<std::vector<LogEntry>>& logs);

}  // namespace tw::monitor
