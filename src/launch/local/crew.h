// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/local/child.h"
#include "launch/local/crew_logs.h"
#include "launch/local/crew_process.h"
#include "launch/local/crew_signals.h"
#include "launch/local/memory_kills.h"
#include "launch/local/script.h"
#include "world/clock.h"

namespace tw::launch {

/// Runs a user's program in several processes of this machine at once, each a peer, forwards their output,
/// and follows a script: it kills, stops and adds processes.
class Crew {
 public:
  struct Options {
    std::vector<std::string> words;                    ///< the program and its arguments
    std::vector<std::vector<Variable>> environments;   ///< one process each, beside the own environment
    std::uint64_t restarts = 0;                        ///< of each one that a signal ended
    std::function<void(const std::string& line)> out;  ///< called with each line of their output
    std::function<void(const std::string& line)> say;  ///< called with their events
    std::string folder{};                              ///< for their verdicts; empty: none
    bool must_join = false;  ///< one that ends with 0 and never took part has failed; needs a folder
    bool begins = false;     ///< it is all of the run: each start gets an id, and the run waits for them
    std::size_t waits_for = SIZE_MAX;  ///< so many of them; SIZE_MAX: all
    Script script{};                   ///< needs `out_folder` unless it is empty
    /// The environment of one that the script adds, by its number.
    std::function<std::vector<Variable>(std::uint64_t number)> newcomer{};
    std::string out_folder{};  ///< of the event logs of a crew that begins; empty: none are followed
  };

  /// The clock outlives this object.
  Crew(world::Clock& clock, Options options);

  /// Until all have ended. A process that a signal ended is started again unless another one has seen the run
  /// to its end; one that is started again, or added, and then does not get into the run any more is no
  /// failure. Signals go to all of them (CrewSignals). Returns the exit code: that of the first that failed;
  /// kGoesOn if peers left on a notice and none completed the run; 128 + signal if a signal ended all; 1 if
  /// the script killed all, or if some ended with 0 in the middle of the run and none completed it. Error:
  /// why its folder cannot take event logs; nothing was started.
  Result<int> run();

  /// The digest of the run that its processes began, as their event logs say; empty: none does.
  std::string run_digest() const { return logs_ ? logs_->run() : ""; }

 private:
  struct Process {
    CrewProcess program;
    std::uint64_t restarts = 0;
    bool came_later = false;  ///< started while the run went on
    bool ended = false;
    bool was_ended = false;                 ///< by this crew: it is neither a failure nor started again
    std::optional<Instant> continues_at{};  ///< it is stopped
    std::optional<int> late{};              ///< code: it came later, and ended before it took part
  };

  void add(std::vector<Variable> environment, bool later);
  void start(Process& process, std::vector<Variable> more);
  void wait_for_news();
  void read_logs();
  void follow_logs();
  void act(const Script::Due& due);
  void kill_by_script(Process& process, Round round);
  void stop_by_script(Process& process, const Stop& stop);
  void wake_stopped();
  void print_lines(Process& process) const;
  void reap(Process& process);
  bool starts_again(Process& process, int signal);
  std::string cause_of(int signal);
  void judge(Process& process, int ending, const std::string& place);
  void say_end(const Process& process, int ending, int code);
  void count(int code, bool lost);
  void end_those_that_wait();
  void watch_the_rest();
  void end_the_rest();
  bool rest_has_time(Process& process, Instant until);
  void end_late_comers();
  void stand_still();
  void pass_on_signals();
  void send(Process& process, int signal);
  bool has_begun();
  bool never_joined(const Process& process) const;
  int code_of(const Process& process, int ending) const;
  void count_late_failures();
  int outcome();

  Options options_;
  world::Clock& clock_;
  std::optional<CrewLogs> logs_;
  std::list<Process> processes_;  ///< in the order of their numbers
  CrewSignals signals_;
  ChildSubreaper subreaper_;
  MemoryKills memory_kills_;
  std::optional<int> first_failure_;
  std::size_t missing_ = 0;  ///< number of a process that failed before the run had begun; 0: none did
  bool begun_ = false;       ///< a peer has taken part in the run
  int well_ = 0;             ///< ended with 0, and the run is complete
  int early_ = 0;            ///< ended with 0 in the middle of the run
  int left_ = 0;             ///< on a notice
  int unreached_ = 0;        ///< found no peer of the run
  std::uint64_t ids_ = 0;    ///< given without logs
};

}  // namespace tw::launch
