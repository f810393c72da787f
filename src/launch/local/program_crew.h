// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tw::launch {

/// A variable of the environment.
using Variable = std::pair<std::string, std::string>;

/// Runs a user's program in several processes at once, each a peer, and forwards their output.
class ProgramCrew {
 public:
  struct Options {
    std::vector<std::string> words;                    ///< the program and its arguments
    std::vector<std::vector<Variable>> environments;   ///< one process each, beside the own environment
    std::uint64_t restarts = 0;                        ///< of each one that a signal ended
    std::function<void(const std::string& line)> out;  ///< called with each line of their output
    std::function<void(const std::string& line)> say;  ///< called with their events
    std::string folder{};                              ///< for their verdicts; empty: none
    bool must_join = false;  ///< one that ends with 0 and never took part has failed; needs a folder
    bool all_begin = false;  ///< the run begins with all of them: one that fails before ends the others
  };

  /// A file in which the process may write where its peer stands, in one word: "joining", "begun" (it takes
  /// part), "started" (or will, of a program that says no more), "notice", "condemned" (it did not join) or
  /// "unsaved" (the run is complete, its last checkpoint is missing). Programs seldom map their end to an
  /// exit code.
  static constexpr const char* kVerdict = "TRADEWIND_VERDICT";

  explicit ProgramCrew(Options options);

  /// Until all have ended. A process that a signal ended is started again unless another one has seen the run
  /// to its end; if it then does not get into the run any more, that is no failure. SIGINT, SIGTERM, SIGUSR1
  /// and SIGUSR2 go to all of them; 3 s after the second SIGINT, or a SIGTERM that comes a second after the
  /// first, they are killed. Returns the exit code: that of the first that failed; kGoesOn if peers left on a
  /// notice and none completed the run; 128 + signal if a signal ended all.
  int run();

 private:
  struct Process {
    std::size_t number = 0;  ///< of its environment
    pid_t pid = -1;
    int output = -1;     ///< read end of a pipe
    std::string rest{};  ///< of a line under way
    std::uint64_t restarts = 0;
    bool ended = false;
    std::optional<int> late{};  ///< code: it was started again, and ended before it took part again
  };

  Status start(Process& process);
  void read_from(Process& process);
  void print(const Process& process, const std::string& line) const;
  void reap(Process& process);
  bool starts_again(Process& process, int signal);
  void judge(Process& process, int status);
  void end_those_that_wait(const Process& failed);
  std::string verdict_of(const Process& process) const;
  bool has_begun();
  void count_late_failures();
  void pass_on_signals();
  void pass_on(std::size_t which, int times);
  bool never_joined(const Process& process) const;
  int code_of(const Process& process, int status) const;

  Options options_;
  std::vector<Process> processes_;
  std::optional<int> first_failure_;
  bool begun_ = false;  ///< a peer has taken part in the run
  std::size_t well_ = 0;
  std::size_t left_ = 0;               ///< on a notice
  int signals_ = 0;                    ///< that came
  std::array<int, 4> passed_{};        ///< of each kind
  std::int64_t terminated_at_ns_ = 0;  ///< steady clock; 0: SIGTERM has not come
  std::int64_t kill_at_ns_ = 0;        ///< steady clock; 0: not yet
};

}  // namespace tw::launch
