// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "spot/notice.h"

namespace tw::spot {

enum class Signal {
  interrupt,  ///< SIGINT: a person at the terminal
  terminate,  ///< SIGTERM
  user,       ///< SIGUSR1, SIGUSR2: Slurm can send them ahead of SIGTERM
  hangup,     ///< SIGHUP: the terminal is gone, or the launcher around the peer
};

/// Meaning of signals to a process. SIGINT has no deadline. SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are notices.
/// Schedulers send them twice within milliseconds: a second SIGTERM counts only a second after the first.
class Signals {
 public:
  static constexpr Duration kTwice = std::chrono::seconds(1);

  struct Options {
    Source source = Source::signal;
    std::optional<Duration> grace = std::chrono::seconds(25);  ///< empty: SIGTERM has no deadline either
  };

  enum class Meaning {
    nothing,        ///< a repetition
    leave,          ///< after the round, without a deadline
    notice,         ///< `notice` holds it
    leave_at_once,  ///< the second interrupt or termination
  };

  struct Said {
    Meaning meaning = Meaning::nothing;
    Notice notice{};
  };

  explicit Signals(Options options) : options_(options) {}

  Said take(Signal signal, Instant now);

  /// SIGINT has come: the user of this process wants it to end, not to come back.
  bool interrupted() const { return interrupted_; }

  /// SIGTERM has come.
  bool terminated() const { return terminated_.has_value(); }

 private:
  Said terminate(Instant now);
  Said notice(Instant now, const char* name) const;

  Options options_;
  bool interrupted_ = false;
  bool noticed_ = false;               ///< by one that is no SIGTERM
  std::optional<Instant> terminated_;  ///< when SIGTERM came first
};

}  // namespace tw::spot
