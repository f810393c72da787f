// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/event_log_tail.h"

/// Whole logs are larger than memory: what is made of them goes through their entries, and keeps no more of
/// each than it needs.
namespace tw::monitor {

/// The logs of a run on one time line. Where the wall clock of a log runs apart from its monotonic clock by
/// another amount than at the beginning of the first log (by more than a second: another machine, or a
/// restart of it), its times are shifted by the difference.
class LogSource {
 public:
  /// log: its number, from 0.
  using Take = std::function<void(const LogEntry& entry, std::size_t log)>;

  virtual ~LogSource() = default;

  /// Gives all entries in the order of time, those of a log in the order of their lines: the same each time.
  /// wanted: phases whose entries are complete; others may have no more than time, writer, round, phase and
  /// whom they are about. Errors: a log that cannot be read.
  virtual Status each(const Phases& wanted, const Take& take) const = 0;
};

/// How far the wall clock of a log is ahead of its monotonic clock.
class ClockOffsets {
 public:
  void note(const LogEntry& entry);

  /// The lower median, because the wall clock may be set while a run goes on. There is at least one.
  Duration usual() const;

 private:
  std::map<std::int64_t, std::uint64_t> counts_;  ///< by milliseconds, as the log has wall time
};

/// By which the times of a log move to the time line of the first one.
Duration shift_between(Duration first, Duration other);

/// The clocks of one log, in stretches. A machine that was restarted begins one, since its monotonic clock
/// does: that steps back, or at a start the wall clock is ahead of it by another amount. Another run begins
/// one, too.
class LogClock {
 public:
  /// By which the times of each stretch move, by the end of its first entry.
  using Shifts = std::map<LogPlace, Duration>;

  /// Takes note of the next entry. run: that it is of. end: where its line ends.
  void note(const LogEntry& entry, const std::string& run, const LogPlace& end);

  /// The shifts of those stretches whose runs go along. first: the offset of the time line; if it is not
  /// known, that of the first of these stretches.
  Shifts shifts(std::optional<Duration>& first,
                const std::function<bool(const std::string& run)>& goes_along) const;

  /// From now on these stretches have these shifts, whatever entries they get.
  void fix(const Shifts& shifts);

  /// The inverse.
  void loosen();

 private:
  struct Stretch {
    std::string run;
    ClockOffsets offsets;
    std::optional<Duration> shift;
  };

  std::map<LogPlace, Stretch> stretches_;
  Instant at_;         ///< of the last entry
  Duration offset_{};  ///< of the last entry
};

/// The shift of the stretch that an entry belongs to whose line ends here.
Duration shift_at(const LogClock::Shifts& shifts, const LogPlace& end);

/// Logs in memory, an entry of the list each; it outlives this object.
class HeldLogs final : public LogSource {
 public:
  explicit HeldLogs(const std::vector<std::vector<LogEntry>>& logs);

  Status each(const Phases& wanted, const Take& take) const override;

 private:
  const std::vector<std::vector<LogEntry>>& logs_;
  std::vector<LogClock::Shifts> shifts_;  ///< by log; the bytes of a place are the number of the entry
};

/// Merges logs: next(i) gives the next entry of log i, nothing at its end. Where the machine of a log was
/// restarted, its clock begins anew: later lines of the log stay later.
Status in_order(std::size_t logs, const std::function<Result<std::optional<LogEntry>>(std::size_t)>& next,
                const LogSource::Take& take);

}  // namespace tw::monitor
