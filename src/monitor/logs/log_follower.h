// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/logs/event_log_json.h"
#include "monitor/logs/newest_run.h"

namespace tw::monitor {

/// Follows all logs of the newest run while their writers go on, on the one time line of monitor::merge:
/// those in a folder, including later ones, or a single log.
class LogFollower {
 public:
  explicit LogFollower(std::string path) : path_(std::move(path)) {}

  /// Lines written since the last call that was no error, in the order of time. Errors: no such folder or
  /// log, a folder that cannot be read, a broken line. When run() has become another one, the earlier lines
  /// were of the other run, and some of this one are missing: another follower has them all.
  Result<std::vector<LogEntry>> poll();

  /// The newest run, and a sentence on the others.
  const std::string& run() const { return runs_.run(); }

  std::string left_out() const { return runs_.left_out(); }

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
  NewestRun runs_;
  std::vector<NewestRun::Stretch> read_;  ///< and not handed out
  std::optional<Duration> first_offset_;
};

}  // namespace tw::monitor
