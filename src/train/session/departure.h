// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "base/time.h"

namespace tw::train {

/// How a peer's part in its run comes to an end: because it was told to leave, because the last round of the
/// run is here, or because it cannot go on. Loop thread only; times are those of CountedTime.
class Departure {
 public:
  enum class Stage {
    running,
    draining,    ///< told to leave: hands in what is done, and goes after the round
    last_round,  ///< the update of the last round is applied; its evaluation and checkpoint may be under way
    lingering,   ///< own work is done: peers that lack the last record can still get it here
    ended,       ///< for a reason; final
  };

  /// How long a peer that lacks the last record is waited for, from when it last fetched something here or
  /// said that it will.
  static constexpr Duration kLinger = std::chrono::seconds(3);
  static constexpr Duration kMostLinger = std::chrono::seconds(30);

  Stage stage() const { return stage_; }

  bool ended() const { return stage_ == Stage::ended; }

  /// The last round is applied, and nothing has gone before it since.
  bool at_the_end() const { return stage_ == Stage::last_round || stage_ == Stage::lingering; }

  /// The user wants to leave, for the first time (true) or once more. Not after the end.
  bool ask_to_leave();

  /// It has to be gone by then; the earliest word counts.
  void leave_by(Instant deadline) { deadline_ = std::min(deadline_, deadline); }

  /// The time is over.
  bool is_overdue(Instant now) const { return now >= deadline_; }

  /// The state after a record is here; last: that record ends the run. Not after the end.
  void stand_at(bool last);

  /// Other peers are ahead: the last round here may not be that of the history that goes on. Not after the
  /// end.
  void catch_up() { stand_at(false); }

  /// An evaluation or a checkpoint of the last round, which is waited for.
  void begin_last_job() { ++last_jobs_; }

  void finish_last_job();

  bool has_last_jobs() const { return last_jobs_ > 0; }

  /// Own work is done; missing: others lack the last record; asked: when one last fetched something here, or
  /// said that it will.
  /// True once nobody is waited for any more. Only at_the_end(), without last jobs.
  bool linger(Instant now, bool missing, Instant asked = {});

  /// failed: it cannot go on. Once.
  void end(std::string reason, bool failed);

  /// It was asked, and may have ended since.
  bool asked_to_leave() const { return asked_; }

  /// Empty before the end.
  const std::string& reason() const { return reason_; }

  bool failed() const { return failed_; }

  /// It ended with the run, not before it.
  bool complete() const { return complete_; }

 private:
  void go_to(Stage next);

  Stage stage_ = Stage::running;
  bool asked_ = false;
  Instant deadline_ = kNever;
  int last_jobs_ = 0;
  Instant lingers_since_{};
  std::string reason_;
  bool failed_ = false;
  bool complete_ = false;
};

}  // namespace tw::train
