// SPDX-License-Identifier: Apache-2.0
#include "spot/signals.h"

#include <utility>

namespace tw::spot {

Signals::Said Signals::take(Signal signal, Instant now) {
  const bool told_before = interrupted_ || noticed_ || terminated_;
  switch (signal) {
    case Signal::interrupt:
      interrupted_ = true;
      return {told_before ? Meaning::leave_at_once : Meaning::leave};
    case Signal::terminate:
      return terminate(now);
    case Signal::user:
    case Signal::hangup:
      if (std::exchange(noticed_, true) || terminated_) return {};
      return notice(now, signal == Signal::user ? "SIGUSR1 or SIGUSR2" : "SIGHUP");
  }
  return {};
}

Signals::Said Signals::terminate(Instant now) {
  if (!terminated_) {
    terminated_ = now;
    return notice(now, "SIGTERM");
  }
  return {now - *terminated_ >= kTwice ? Meaning::leave_at_once : Meaning::nothing};
}

Signals::Said Signals::notice(Instant now, const char* name) const {
  if (!options_.grace) return {Meaning::leave};
  return {Meaning::notice, {options_.source, NoticeKind::preempt, now + *options_.grace, name}};
}

}  // namespace tw::spot
