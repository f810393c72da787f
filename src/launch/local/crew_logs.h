// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "launch/local/script.h"
#include "monitor/logs/event_log_json.h"
#include "monitor/logs/event_log_tail.h"
#include "monitor/logs/newest_run.h"
#include "world/clock.h"

namespace tw::launch {

/// The event logs of a crew's processes: where they listen, what the script wants by them, and the launcher's
/// own log, which says when a process was started or killed. Processes have numbers, from 1; each start of
/// one is a peer with an id of its own. Peers of the script are numbers of processes.
class CrewLogs {
 public:
  /// Makes the folder. The clock outlives this object.
  static Result<CrewLogs> open(const std::string& folder, world::Clock& clock, Script script);

  /// The least id that no log of the folder has; each once.
  PeerId next_id();

  void note_start(std::size_t number, PeerId id);
  void note_kill(std::size_t number, Round round);
  void note_end(std::size_t number);

  /// Reads what was written since the last call. A log that cannot be read is an error, and read no more.
  Status follow();

  /// " in round 5 of 16", of a process that has not ended; empty: its log does not say.
  std::string place_of(std::size_t number) const;

  Script::Due due() { return script_.step(clock_->now()); }

  const Script& script() const { return script_; }

  /// The digest of the run that the processes began; empty: none has said it.
  const std::string& run() const { return run_; }

  /// Once: that the folder has logs of another run than this one. Empty: nothing to say.
  std::string take_news() { return std::exchange(news_, {}); }

  /// Where processes listen that have not ended, of three at most.
  std::vector<std::string> addresses() const;

 private:
  struct Followed {
    PeerId id;
    monitor::EventLogTail tail;
    std::string address{};  ///< empty until it listens
    Round round = 0;        ///< the latest that it began
    Round last_round = 0;   ///< of the run; 0: not known
  };

  CrewLogs(std::string folder, world::Clock& clock, Script script, monitor::JsonEventLog log)
      : folder_(std::move(folder)),
        clock_(&clock),
        script_(std::move(script)),
        log_(std::move(log)),
        before_(monitor::runs_in(folder_)) {}

  std::string path_of(PeerId id) const { return folder_ + "/" + monitor::event_log_name(id); }

  void log(world::Fact fact, PeerId about, Round round);
  void note_run(const std::string& run);

  std::string folder_;
  world::Clock* clock_;
  Script script_;
  monitor::JsonEventLog log_;
  monitor::NewestRun before_;  ///< of which the folder had logs
  std::string run_, news_;
  std::map<std::size_t, Followed> followed_;
  std::uint64_t last_id_ = 0;
};

}  // namespace tw::launch
