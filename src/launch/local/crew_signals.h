// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <vector>

#include "base/time.h"

namespace tw::launch {

/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that come to this process, for a crew that passes them on.
/// They are counted as long as it lives, and those that came before it. An ignored SIGHUP (nohup) stays so.
/// SIGTSTP (Ctrl-Z) waits for the crew. One at a time.
class CrewSignals {
 public:
  CrewSignals();
  CrewSignals(const CrewSignals&) = delete;
  CrewSignals& operator=(const CrewSignals&) = delete;
  ~CrewSignals();

  /// Those that came since the last call, each once.
  std::vector<int> take(Instant now);

  /// A signal came, taken or not.
  bool any() const;

  /// This one did.
  bool came(int signal) const;

  /// SIGTSTP came since the last call.
  static bool take_stop();

  /// Stops this process, until SIGCONT. Where no shell could continue it, nothing happens.
  static void stop_here();

  /// The processes are to be killed: 3 s after the second SIGINT, or after a SIGTERM that came a second after
  /// the first, for schedulers send it twice within milliseconds.
  bool kills(Instant now) const { return kill_at_ && now >= *kill_at_; }

  /// The processes were asked to end at once.
  bool at_once() const { return kill_at_.has_value(); }

  /// As if that had been said now.
  void end_all(Instant now);

 private:
  static constexpr std::size_t kKinds = 5;

  std::array<struct sigaction, kKinds> before_{};

  struct sigaction stop_before_ {};

  std::array<int, kKinds> taken_{};
  std::optional<Instant> terminated_at_;
  std::optional<Instant> kill_at_;
};

}  // namespace tw::launch
