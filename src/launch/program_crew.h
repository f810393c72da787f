// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

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

/// Runs a program of the user's in several processes at once, each a peer, and passes on what they print.
class ProgramCrew {
 public:
  struct Options {
    std::vector<std::string> words;                    ///< the program and its arguments
    std::vector<std::vector<Variable>> environments;   ///< one process each, beside the own environment
    std::uint64_t restarts = 0;                        ///< of each one that a signal ended
    std::function<void(const std::string& line)> out;  ///< what they print, a line each
    std::function<void(const std::string& line)> say;  ///< what happens to them
  };

  explicit ProgramCrew(Options options);

  /// Until all have ended. SIGINT and SIGTERM go to all of them; 3 s after the second one they are killed.
  /// Returns the exit code: that of the first that failed, 128 + signal where a signal ended all.
  int run();

 private:
  struct Process {
    std::size_t number = 0;  ///< of its environment
    pid_t pid = -1;
    int output = -1;     ///< read end of a pipe
    std::string rest{};  ///< of a line under way
    std::uint64_t restarts = 0;
    bool ended = false;
  };

  Status start(Process& process);
  void read_from(Process& process);
  void print(const Process& process, const std::string& line) const;
  void reap(Process& process);
  void pass_on_signals();

  Options options_;
  std::vector<Process> processes_;
  std::optional<int> first_failure_;
  std::size_t well_ = 0;
  int signals_ = 0;
  std::int64_t kill_at_ns_ = 0;  ///< steady clock; 0: not yet
};

}  // namespace tw::launch
