// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/local/child.h"

namespace tw::launch {

/// The variable with the number of a process in its crew: the same one in all its starts.
inline constexpr const char* kProcessVariable = "TRADEWIND_PROCESS";

/// The variable with the name of this process (host/watched_process.h), which started the program: its peer
/// leaves when that is gone (bind/peer_thread.h), though another program stands between the two.
inline constexpr const char* kLauncherVariable = "TRADEWIND_LAUNCHER";

/// A user's program that runs in a process, or in several, one after the other: each start is a peer.
class CrewProcess {
 public:
  /// number: from 1. verdict_file: where the program says where its peer stands; empty: nowhere.
  CrewProcess(std::size_t number, std::vector<Variable> environment, std::string verdict_file);

  /// Starts the program; more: variables of this start alone. One that runs is killed.
  Status start(const std::vector<std::string>& words, const std::vector<Variable>& more);

  std::size_t number() const { return number_; }

  /// The lines that it has printed since the last call; after its end the rest, too.
  std::vector<std::string> take_lines();

  /// Its last word (launch/local/verdict.h); empty: it has said nothing.
  std::string verdict() const;

  /// Exit status, or 128 + signal, of the last start after its end.
  std::optional<int> ending() { return child_ ? child_->ending() : std::nullopt; }

  int ended_by() const { return child_ ? child_->ended_by() : 0; }

  /// For poll; -1: nothing comes any more.
  int output() const { return child_ ? child_->output() : -1; }

  /// SIGKILL, SIGSTOP and SIGCONT reach its own processes, too, which are part of the peer.
  void send_signal(int signal) const;

  bool is(pid_t process) const { return child_ && child_->is(process); }

  /// Child::send_signal_to_rest
  bool send_signal_to_rest(int signal) { return child_ && child_->send_signal_to_rest(signal); }

 private:
  std::size_t number_;
  std::vector<Variable> environment_;
  std::string verdict_file_;
  std::optional<Child> child_;
  std::string rest_;  ///< of a line under way
};

}  // namespace tw::launch
