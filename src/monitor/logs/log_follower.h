// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

/// Follows all logs of a run while their writers go on, on the one time line of monitor::merge: those in a
/// folder, including later ones, or a single log.
class LogFollower {
 public:
  explicit LogFollower(std::string path) : path_(std::move(path)) {}

  /// Lines written since the last call, in the order of time. Errors: no such folder or log, a folder that
  /// cannot be read, a broken line.
  Result<std::vector<LogEntry>> poll();

  /// How many logs there are so far.
  std::size_t logs() const { return logs_.size(); }

 private:
  struct Log {
    EventLogTail tail;
    std::optional<Duration> shift;  ///< to the time line of the first log
  };

  Status find_logs();
  void place(Log& log, std::vector<LogEntry>& entries);

  std::string path_;
  std::map<std::string, Log> logs_;  ///< by path
  std::optional<Duration> first_offset_;
};

}  // namespace tw::monitor
