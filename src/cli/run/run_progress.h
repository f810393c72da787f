// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "monitor/logs/event_log_json.h"
#include "plan/advise/replan.h"

namespace tw::cli {

/// How far a run is, from the event logs of its peers. Its speed is that of the last 20 rounds. Where a
/// run has ended, the peers count that were there at the end.
plan::RunProgress progress_of(const std::vector<std::vector<monitor::LogEntry>>& logs,
                              std::int64_t now_unix_s);

/// The same for a run's folder, or for one log.
Result<plan::RunProgress> progress_in(const std::string& path, std::int64_t now_unix_s);

}  // namespace tw::cli
