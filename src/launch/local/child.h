// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tw::launch {

/// Most peers on one machine.
inline constexpr std::uint64_t kMaxLocalPeers = 64;

/// Exit code of a peer that left on a notice, or by SIGTERM: its run goes on, and it may come back
/// (EX_TEMPFAIL of sysexits.h).
inline constexpr int kGoesOn = 75;

/// Path of this program.
std::string own_path();

/// The end of a process's output in this file, for messages.
std::string last_words(const std::string& output_path);

/// A child process; it ends at the latest with this object, and with this process, even if that is killed.
class Child {
 public:
  /// Runs a program (a path, or a name that PATH finds) in its own process group: signals of the terminal do
  /// not reach it. Both outputs go to the end of the file at output_path.
  static Result<Child> start(const std::vector<std::string>& words, const std::string& output_path);

  /// This very program again, with other arguments.
  static Result<Child> start_self(std::vector<std::string> arguments, const std::string& output_path);

  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), ending_(other.ending_) {}

  Child(const Child&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child();

  void send_signal(int signal) const;

  /// After its end: exit status, or 128 + signal.
  std::optional<int> ending();

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  /// words: argv, the name of the program first.
  static Result<Child> start_program(const std::string& program, const std::vector<std::string>& words,
                                     const std::string& output_path);

  pid_t pid_;
  std::optional<int> ending_;
};

}  // namespace tw::launch
