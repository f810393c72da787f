// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "world/clock.h"
#include "world/events.h"

namespace tw {

/// One line of an event log as it stands in the file: what happened, who wrote it, and when by the calendar.
/// Writer 0 is whoever drives an experiment from outside (`tw local`).
struct LogEntry {
  PeerId writer;
  std::int64_t unix_nanos = 0;
  Event event;
};

/// The line without its end: {"t": seconds, "time": RFC 3339, "peer", "round", "phase", and where present
/// "about", "why", "digest", "cause", then the numbers by their names}. Not-a-number and infinity are written
/// as null.
std::string to_json_line(const LogEntry& entry);

/// The inverse. Errors say what is missing or of the wrong kind.
Result<LogEntry> parse_json_line(const std::string& line);

/// "events-7.jsonl"; "events-local.jsonl" for writer 0.
std::string event_log_name(PeerId writer);

/// Appends events to a file, a line each, handed to the system at once: a killed process loses nothing but,
/// at worst, the end of its last line. Loop thread only.
class JsonEventLog : public EventSink {
 public:
  /// Continues an existing file after its last whole line. The clock outlives the log.
  static Result<JsonEventLog> open(const std::string& path, PeerId writer, Clock& clock);

  void emit(const Event& event) override;

  /// Why lines are missing (disk full, for example); training goes on without them.
  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  JsonEventLog(std::string path, PeerId writer, Clock& clock);

  std::string path_;
  PeerId writer_;
  Clock* clock_;
  std::ofstream file_;
  std::optional<Error> trouble_;
};

/// Follows a log that another process writes.
class EventLogTail {
 public:
  explicit EventLogTail(std::string path) : path_(std::move(path)) {}

  /// The lines that were completed since the last call; none while there is no such file. Errors: path:line
  /// and why.
  Result<std::vector<LogEntry>> poll();

  /// What stands after the last line end: a line under way, or torn when its writer was killed.
  const std::string& rest() const { return rest_; }

 private:
  std::string path_;
  std::ifstream file_;
  std::string rest_;
  std::uint64_t lines_ = 0;
};

/// A whole log. A torn last line is left out; any other broken line is an error that names path:line.
Result<std::vector<LogEntry>> read_event_log(const std::string& path);

/// All logs of a folder, a log each. Errors: no such folder, no log in it, a broken line.
Result<std::vector<std::vector<LogEntry>>> read_event_logs(const std::string& folder);

}  // namespace tw
