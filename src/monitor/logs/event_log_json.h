// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "monitor/logs/log_file.h"
#include "world/clock.h"
#include "world/events.h"

namespace tw::monitor {

/// One line of an event log: the event, its writer and its wall time. Writer 0 drives an experiment from
/// outside (`tw run`).
struct LogEntry {
  PeerId writer;
  std::int64_t unix_nanos = 0;
  world::Event event;
};

/// The line without its end: {"t": seconds, "time": RFC 3339, "peer", "round", "phase", and where present
/// "about", "why", then the facts by their names (world/events.h)}. Not-a-number and infinity are written as
/// null.
std::string to_json_line(const LogEntry& entry);

/// The inverse. Errors say what is missing or of the wrong kind; facts of a later version are left out.
Result<LogEntry> parse_json_line(const std::string& line);

/// A set of phases.
using Phases = std::bitset<world::kPhaseNames.size()>;

inline constexpr Phases kAllPhases{(1ULL << world::kPhaseNames.size()) - 1};

constexpr Phases phases(std::initializer_list<world::Phase> some) {
  unsigned long long bits = 0;
  for (const world::Phase phase : some) bits |= 1ULL << static_cast<unsigned>(phase);
  return {bits};
}

/// The same, but for entries of other phases than the wanted ones, of a line as to_json_line writes it: they
/// have no more than time, writer, round, phase and whom they are about, and the rest is not examined. That
/// takes a tenth of the time.
Result<LogEntry> parse_json_line(const std::string& line, const Phases& wanted);

/// "2026-01-31T12:00:00.000Z"
std::string calendar_time(std::int64_t unix_nanos);

/// "events-7.jsonl"; "events-local.jsonl" for writer 0.
std::string event_log_name(PeerId writer);

/// When a log continues in a further file (monitor/logs/log_file.h), and how many files stay: the first one,
/// which says how the peer began, and the newest.
struct LogLimits {
  std::uint64_t part_bytes = 32ULL << 20;
  std::uint64_t parts = 8;  ///< at least 2
};

/// Why events are not in the log (disk full, for example). The peer goes on without them.
struct LogTrouble {
  std::string message;        ///< "cannot write out/events-7.jsonl: No space left on device"
  std::uint64_t missing = 0;  ///< events, so far
  Instant since{};            ///< when the first of them happened
};

/// Appends events to files, a line each, handed to the system at once: a killed process loses nothing but, at
/// worst, the end of its last line. While lines cannot be written, it tries again once a second, and writes
/// how many are missing (a log event with `missing`, `seconds` and why) before the next one. A further file
/// begins with a log event, too: `part`, and `logged`, the lines of all files before it. Where the file was
/// removed or moved, a new one of its name begins with the start event of this writer, and with a log event
/// whose `missing` counts the lines that are gone. Loop thread only.
class JsonEventLog : public world::EventSink {
 public:
  /// Continues an existing log after its last whole line. The clock outlives the log. A disk that is full,
  /// failing or read-only is trouble, which may pass; any other failure (no such folder, no permission) is an
  /// error.
  static Result<JsonEventLog> open(const std::string& path, PeerId writer, world::Clock& clock,
                                   LogLimits limits = {});

  void emit(const world::Event& event) override;

  const std::optional<LogTrouble>& trouble() const { return trouble_; }

  /// That the log was removed or moved, in words, once; empty: it was not.
  std::string take_removal() { return std::exchange(removal_, {}); }

 private:
  JsonEventLog(std::string path, PeerId writer, world::Clock& clock, LogLimits limits);

  std::error_code take_up();
  std::error_code take_up_in_its_folder();
  std::error_code next_part();
  bool has_gone(Instant now, bool is_last);
  void forget_file(Instant at);
  std::string text_of(const world::Event& event, std::uint64_t& lines) const;
  std::string line_of(const world::Event& event) const;
  void note_trouble(std::error_code cause, Instant at);

  std::string path_;
  PeerId writer_;
  world::Clock* clock_;
  LogLimits limits_;
  LogFile file_;
  std::uint64_t part_ = 1;
  std::uint64_t logged_ = 0;  ///< lines of all parts
  std::error_code cause_;     ///< of the trouble
  std::optional<LogTrouble> trouble_;
  Instant tried_{};
  Instant looked_{};                   ///< whether the file still has its name
  std::optional<world::Event> start_;  ///< of this writer
  std::string removal_;
  bool was_removed_ = false;  ///< the file, and there is no new one yet
};

}  // namespace tw::monitor
