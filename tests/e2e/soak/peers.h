// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "e2e/program.h"
#include "e2e/soak/disks.h"
#include "e2e/soak/history_judge.h"
#include "e2e/soak/line_judge.h"
#include "e2e/soak/line_tail.h"
#include "e2e/soak/stepped_clock.h"
#include "e2e/soak/testbed.h"

namespace tw::soak {

using Moment = std::chrono::steady_clock::time_point;

/// The processes of a soak, each with its host, its clock and what it writes, which goes to the judges.
class Peers {
 public:
  struct Options {
    std::string folder;       ///< for what they print, and their clocks
    std::string token;        ///< lets them in
    std::size_t members = 5;  ///< that the run waits for before it begins
  };

  struct Place {
    std::size_t host = 0;
    std::size_t slot = 0;
  };

  Peers(Options options, const Testbed& testbed, const Disks& disks);

  /// Starts the toy program (tests/toy/toy.c), which checks the mean of each round. The same words each time
  /// but for the very first peer of the run, which joins nobody.
  void launch(std::uint64_t id, Place place);

  /// Kills it at once, without notice.
  void kill(std::uint64_t id);
  /// Tells it to leave; it must end well within a minute.
  void dismiss(std::uint64_t id);

  /// Nothing happens when it is not there.
  void send(std::uint64_t id, int signal);

  /// Reads what they have written, and looks whether any has ended that should not.
  void look();

  bool runs(std::uint64_t id) const { return running_.contains(id); }

  bool is_leaving(std::uint64_t id) const { return leaving_.contains(id); }

  bool anybody_is_leaving() const { return !leaving_.empty(); }

  std::vector<std::uint64_t> ids() const;

  std::size_t host_of(std::uint64_t id) const { return running_.at(id).place.host; }

  pid_t process_of(std::uint64_t id) const { return running_.at(id).program->pid(); }

  bool can_step_clock(std::uint64_t id) const;

  SteppedClock& clock_of(std::uint64_t id) { return *running_.at(id).clock; }

  Round last_round(std::uint64_t id) const { return running_.at(id).last; }

  /// That two of them have, so that it is not what one decided alone.
  Round newest_round() const;

  /// The most that a peer counts which is there now.
  std::size_t members() const;

  /// It commits what the run commits, by its own log.
  bool is_settled(std::uint64_t id) const;

  const HistoryJudge& history() const { return history_; }

  const LineJudge& lines() const { return lines_; }

  /// Ends without a reason.
  const std::vector<std::string>& faults() const { return faults_; }

  /// All leave at the same time.
  void end();

 private:
  struct Running {
    Place place;
    std::unique_ptr<SteppedClock> clock;
    std::unique_ptr<Program> program;
    LineTail printed;
    Round last = 0;
    std::size_t members = 0;  ///< of the last record
  };

  /// events-7.jsonl, then events-7.2.jsonl and so on.
  struct EventLog {
    std::uint64_t part = 1;
    LineTail tail;
  };

  struct Leaving {
    Running peer;
    Moment until;
  };

  std::vector<std::string> words(std::uint64_t id, Place place) const;
  std::vector<std::string> enter(std::uint64_t id, Place place, const SteppedClock& clock) const;
  bool has_time_namespace(std::uint64_t id) const;
  void take_event(const monitor::LogEntry& entry, Running& peer);
  void read_event_log(std::uint64_t id, Running& peer);
  void read_output(std::uint64_t id, Running& peer);
  void look_at_ends();

  Options options_;
  const Testbed* testbed_;
  const Disks* disks_;
  std::map<std::uint64_t, Place> places_;       ///< of all that ever ran
  std::map<std::string, EventLog> event_logs_;  ///< by path of the first file
  std::map<std::uint64_t, Running> running_;
  std::map<std::uint64_t, Leaving> leaving_;
  HistoryJudge history_;
  LineJudge lines_;
  std::vector<std::string> faults_;
  std::size_t launches_ = 0;
};

}  // namespace tw::soak
