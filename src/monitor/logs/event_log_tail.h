// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "monitor/logs/event_log_json.h"

namespace tw::monitor {

/// How far a log was read: whole lines of one of its parts.
struct LogPlace {
  std::uint64_t part = 1, bytes = 0;

  auto operator<=>(const LogPlace&) const = default;
};

/// What a reader does with a line that nobody can read.
enum class BrokenLine { error, skipped };

/// Follows a log that another process writes, from part to part, a piece at a time; and the one that is begun
/// anew in its place.
class EventLogTail {
 public:
  explicit EventLogTail(std::string path, BrokenLine broken = BrokenLine::error)
      : path_(std::move(path)), broken_(broken) {}

  /// The next line; nothing: no further one is complete, or there is no such file. wanted: of
  /// parse_json_line. Errors: path:line and why; the path of what is no regular file. The next call tries
  /// that line again. parts: log_parts of the log, asked before; nothing: they are asked for where needed.
  Result<std::optional<LogEntry>> next(const Phases& wanted = kAllPhases,
                                       const std::vector<std::uint64_t>* parts = nullptr);

  /// Gives all lines that next() would. Errors: as above; those before are given.
  Status each_new(const Phases& wanted, const std::function<void(LogEntry entry)>& take);

  /// The lines that were completed since the last call that was no error. Errors: as above.
  Result<std::vector<LogEntry>> poll();

  /// After the last line that was taken.
  LogPlace place() const { return {part_, bytes_}; }

  /// That were taken since the log began.
  std::uint64_t lines() const { return lines_before_ + lines_; }

  /// It took as many lines up to the same place, of a log that begins alike.
  bool stands_as(const EventLogTail& other) const {
    return place() == other.place() && lines() == other.lines() && begin_ == other.begin_;
  }

 private:
  Result<bool> read_on(const std::vector<std::uint64_t>* parts);
  Result<bool> read_piece(std::uint64_t part, std::uint64_t from);
  Result<std::optional<LogEntry>> take_line(std::size_t end, const Phases& wanted);
  bool was_begun_anew(const std::vector<std::uint64_t>* parts) const;
  void begin_at(std::uint64_t part);
  std::vector<std::uint64_t> further_parts(const std::vector<std::uint64_t>* parts) const;

  std::string path_;
  BrokenLine broken_;
  std::uint64_t part_ = 1;
  std::uint64_t lines_before_ = 0;       ///< of earlier parts, that were taken
  std::uint64_t bytes_ = 0, lines_ = 0;  ///< of this part, that were taken
  std::string begin_;                    ///< of them
  std::string text_;                     ///< read last; from at_ on it was not taken
  std::size_t at_ = 0;
  std::vector<LogEntry> taken_;  ///< by poll, and not handed out
};

}  // namespace tw::monitor
