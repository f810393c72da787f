// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tw::launch {

/// Most peers on one machine.
inline constexpr std::uint64_t kMaxLocalPeers = 64;

/// Path of this program. Throws std::runtime_error where /proc is not mounted.
std::string own_path();

/// A variable of the environment.
using Variable = std::pair<std::string, std::string>;

/// The end of a process's output in this file, for messages.
std::string last_words(const std::string& output_path);

/// While it lives, a process whose parent has ended becomes a child of this one. So Child can tell what is
/// left of its group from what has ended there, whatever process 1 of this machine does about it.
class ChildSubreaper {
 public:
  ChildSubreaper();

  /// What came here so and has ended is a zombie no more. own: children that others wait for.
  void reap(const std::function<bool(pid_t)>& own) const;

  ChildSubreaper(const ChildSubreaper&) = delete;
  ChildSubreaper& operator=(const ChildSubreaper&) = delete;
  ~ChildSubreaper();
};

/// A child process; it ends at the latest with this object, and with this process, even if that is killed.
/// It has its own process group: signals of the terminal do not reach it.
class Child {
 public:
  /// Runs a program (a path, or a name that PATH finds). Both outputs go to the end of the file at
  /// output_path; it reads nothing.
  static Result<Child> start(const std::vector<std::string>& words, const std::string& output_path);

  /// This very program again, with other arguments.
  static Result<Child> start_self(std::vector<std::string> arguments, const std::string& output_path);

  /// Its outputs come through take_output(). It has these variables beside the environment of this process,
  /// and the same stdin.
  static Result<Child> start_piped(const std::vector<std::string>& words,
                                   const std::vector<Variable>& environment);

  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        output_(std::exchange(other.output_, -1)),
        ending_(other.ending_),
        ended_by_(other.ended_by_),
        has_rest_(other.has_rest_) {}

  Child(const Child&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child();

  void send_signal(int signal) const;

  /// To it and to the processes that it has started, such as the workers of torchrun.
  void send_signal_to_all(int signal) const;

  /// After its end, to those of its processes that are still there; 0: to see whether there are any. False:
  /// there are none. A process that has made itself another session is none of them.
  bool send_signal_to_rest(int signal);

  bool is(pid_t process) const { return process == pid_; }

  /// What it has written to the pipe since the last call. Does not wait.
  std::string take_output();

  /// For poll: the end of the pipe; -1: there is none.
  int output() const { return output_; }

  /// After its end: exit status, or 128 + signal.
  std::optional<int> ending();

  /// The signal that ended it; 0: none did.
  int ended_by() const { return ended_by_; }

 private:
  Child(pid_t pid, int output) : pid_(pid), output_(output) {}

  static Result<Child> start_quiet(std::string program, std::vector<std::string> words,
                                   const std::string& output_path);

  pid_t pid_;
  int output_;
  std::optional<int> ending_;
  int ended_by_ = 0;
  bool has_rest_ = true;  ///< after its end: its group was never found empty, so its number is still its own
};

}  // namespace tw::launch
