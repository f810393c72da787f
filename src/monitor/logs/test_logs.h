// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "base/text/text_file.h"
#include "monitor/logs/event_log_tail.h"
#include "monitor/logs/log_file.h"
#include "monitor/logs/log_source.h"

namespace tw::monitor {

/// A whole log, with all existing parts. A torn last line of a part is left out; any other broken line is an
/// error that names path:line.
inline Result<std::vector<LogEntry>> read_event_log(const std::string& path) {
  if (log_parts(path).empty()) TW_TRY(read_text_from(path, 0, 0));  // says why
  return EventLogTail(path).poll();
}

/// The logs of find_event_logs, an entry of the list each, of whatever runs. Errors: also a broken line.
inline Result<std::vector<std::vector<LogEntry>>> read_event_logs(const std::string& folder_or_log) {
  TW_TRY(const auto paths, find_event_logs(folder_or_log));
  std::vector<std::vector<LogEntry>> logs;
  for (const std::string& path : paths) {
    TW_TRY(auto log, read_event_log(path));
    logs.push_back(std::move(log));
  }
  return logs;
}

/// All entries of these logs, as HeldLogs gives them.
inline std::vector<LogEntry> merge(const std::vector<std::vector<LogEntry>>& logs) {
  std::vector<LogEntry> all;
  const Status merged =
      HeldLogs(logs).each(kAllPhases, [&](const LogEntry& entry, std::size_t) { all.push_back(entry); });
  TW_CHECK(merged.ok());
  return all;
}

}  // namespace tw::monitor
