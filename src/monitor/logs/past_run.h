// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/ids.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

struct UnfinishedRun {
  std::string log;  ///< path of one that shows it
  Round rounds = 0;
};

/// What the event logs (events-*.jsonl) in this folder show of a run that had begun: after a start with its
/// digest, rounds were committed. Nothing if there is none, or if a log shows that the run is complete. Reads
/// all logs of the folder.
std::optional<UnfinishedRun> unfinished_run(const std::string& folder, const std::string& run);

/// The starts and commits of one log, with all its parts: faster than all events. Unreadable lines and what
/// is no regular file are ignored.
void for_each_start_and_commit(const std::string& log, const std::function<void(const LogEntry&)>& take);

}  // namespace tw::monitor
