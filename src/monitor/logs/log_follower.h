// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/logs/event_log_tail.h"
#include "monitor/logs/log_source.h"
#include "monitor/logs/newest_run.h"

namespace tw::monitor {

/// All logs of the newest run, those in a folder or a single one: whole, or followed while their writers go
/// on and new ones come. Lines are read from the files when they are asked for, not kept.
class LogFollower final : public LogSource {
 public:
  explicit LogFollower(std::string path) : path_(std::move(path)) {}

  /// What find_event_logs takes, looked at up to the present end. Errors: of that and of look.
  static Result<LogFollower> of_whole_logs(const std::string& folder_or_log);

  /// Looks at the lines that were written since the last call: what run() and the others say is up to date
  /// then, and the lines are given from then on. Errors: no such folder or log, a folder that cannot be read,
  /// a broken line, also the one that each_new found, until it was mended.
  Status look();

  /// All entries that were looked at. Errors: also a broken line that look did not examine, or a log of which
  /// lines are gone since.
  Status each(const Phases& wanted, const Take& take) const override;

  /// Those that were not given by earlier calls. When run() has become another one, these were of the other
  /// run, and some of this one are missing: rewind. After an error, too: what this call gave counts as not
  /// given.
  Status each_new(const Take& take);

  /// The next call of each_new gives all entries, on the time line that a new object finds.
  void rewind();

  /// The newest run, its peers without a launcher, and a sentence on the other runs.
  const std::string& run() const { return runs_.run(); }

  std::vector<PeerId> writers() const { return runs_.writers(); }

  std::string left_out() const { return runs_.left_out(); }

  /// How many logs there are so far.
  std::size_t logs() const { return logs_.size(); }

 private:
  /// How far a log was given.
  struct Given {
    EventLogTail tail;
    std::string run;
    std::uint64_t left_out = 0;  ///< entries
    bool is_broken = false;      ///< its next line
  };

  struct Log {
    explicit Log(const std::string& path) : looked(path), given{EventLogTail(path)} {}

    EventLogTail looked;
    Given given;
    LogClock clock;
    std::vector<std::uint64_t> parts;  ///< at the last look
  };

  /// What is read of one log.
  struct Reading {
    std::size_t log = 0;
    Given given;
    LogPlace end;
    LogClock::Shifts shifts;
  };

  Status find_logs();
  Status look_at(const std::string& path, Log& log);
  std::function<bool(const std::string& run)> goes_along() const;
  Result<std::optional<LogEntry>> next_of(Reading& reading, const Phases& wanted) const;
  Status give(std::vector<Reading>& readings, const Phases& wanted, const Take& take) const;

  std::string path_;
  std::map<std::string, Log> logs_;  ///< by path
  NewestRun runs_;
  std::optional<Duration> first_offset_;  ///< of the time line, once entries were given
  std::optional<EventLogTail> broken_;    ///< before the line that each_new could not read
};

}  // namespace tw::monitor
