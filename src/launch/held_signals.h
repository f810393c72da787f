// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <map>

namespace tw::launch {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end this program, which ends the commands under way
/// first. In the end the signals that came are raised again, with the actions that they had before. Those
/// that are ignored stay so. One inside another does nothing. Main thread.
class HeldEndSignals {
 public:
  HeldEndSignals();
  HeldEndSignals(const HeldEndSignals&) = delete;
  HeldEndSignals& operator=(const HeldEndSignals&) = delete;
  ~HeldEndSignals();

  /// One of them came. Any thread.
  static bool came();

  /// Somebody does not want to wait: a second Ctrl-C, or another signal at least a second later. Service
  /// managers send two at once. Any thread.
  static bool insist();

 private:
  bool is_outer_;
  std::map<int, struct sigaction> before_;  ///< by signal
};

}  // namespace tw::launch
