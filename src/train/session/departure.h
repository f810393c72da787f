// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace tw::train {

/// How the part of a peer in its run ended.
enum class Ending {
  none,         ///< it has not
  left,         ///< the program around it wanted so
  notice,       ///< on a notice, or it did not join because of one: the run goes on, the peer may come back
  interrupted,  ///< a person wanted so (SIGINT)
  complete,     ///< the run is complete
  unreached,    ///< failed: no peer of a run that had begun before was reached; another start may reach one
  failed,
  lost,   ///< failed: nothing is left of the run, so that another start fails, too, until a person decides
  taken,  ///< failed: another run trains in its folder; as above
};

constexpr bool is_failure(Ending ending) { return ending >= Ending::unreached; }

/// "complete"; empty for none; "left" for unreached.
std::string_view name_of(Ending ending);

/// Why a run ends before its last round.
enum class EndCause { program, budget };

/// How a peer's part in its run ends: it was told to leave, the last round is over, or it cannot go on. Loop
/// thread only; times are those of CountedTime.
class Departure {
 public:
  enum class Stage {
    before,  ///< its part has not begun
    running,
    draining,    ///< told to leave: contributes its work, and leaves after the round
    last_round,  ///< the update of the last round is applied; its checkpoint may be under way
    lingering,   ///< own work is done: peers that lack the last record can still fetch it
    ended,       ///< for a reason; final
  };

  /// How long to wait for a peer that lacks the last record, from its last request or announcement of one.
  static constexpr Duration kLinger = std::chrono::seconds(3);
  static constexpr Duration kMostLinger = std::chrono::seconds(30);

  /// ends: called once, when it ended.
  explicit Departure(std::function<void()> ends) : ends_(std::move(ends)) {}

  Stage stage() const { return stage_; }

  void begin() { go_to(Stage::running); }

  /// Neither before begin() nor after the end.
  bool is_under_way() const { return stage_ != Stage::before && !ended(); }

  bool ended() const { return stage_ == Stage::ended; }

  /// The last round is applied, and no better history has appeared since.
  bool at_the_end() const { return stage_ == Stage::last_round || stage_ == Stage::lingering; }

  /// It has to leave, asked for the first time (true) or once more; as: left, notice or interrupted.
  /// The reason that stands last in Ending counts. Not after the end.
  bool ask_to_leave(Ending as);

  /// Sets the deadline of leaving; the earliest counts.
  void leave_by(Instant deadline) { deadline_ = std::min(deadline_, deadline); }

  /// The deadline has passed.
  bool is_overdue(Instant now) const { return now >= deadline_; }

  /// This peer has the state after a record; last: that record ends the run. Not after the end.
  void stand_at(bool last);

  /// Other peers are ahead: this peer's last round may belong to a losing history. Not after the end.
  void catch_up() { stand_at(false); }

  /// A checkpoint of the last round began; the end waits for it.
  void begin_last_job() { ++last_jobs_; }

  void finish_last_job();

  bool has_last_jobs() const { return last_jobs_ > 0; }

  /// Own work is done; missing: others lack the last record; asked: time of the last request, or announcement
  /// of one. True once there is no peer to wait for. Only at_the_end(), without last jobs.
  bool linger(Instant now, bool missing, Instant asked = {});

  /// With the run, or because it was asked to leave. The first end counts.
  void end(std::string reason);

  /// It cannot go on. Counts even after end(): what was promised then is not done.
  void fail(std::string reason, Ending as = Ending::failed);

  /// Decided once, at the end.
  Ending ending() const { return ending_; }

  /// Empty before the end.
  const std::string& reason() const { return reason_; }

 private:
  void go_to(Stage next);
  void end_as(Ending ending, std::string reason);

  std::function<void()> ends_;
  Stage stage_ = Stage::before;
  Ending asked_as_ = Ending::none;
  Instant deadline_ = kNever;
  int last_jobs_ = 0;
  Instant lingers_since_{};
  std::string reason_;
  Ending ending_ = Ending::none;
};

}  // namespace tw::train
