// SPDX-License-Identifier: Apache-2.0
#include "train/session/alarm.h"

#include <utility>

namespace tw::train {

Alarm::Alarm(world::Clock& clock, std::function<void()> ring) : clock_(clock), ring_(std::move(ring)) {}

void Alarm::set_by(Instant when) {
  if (when >= at_) return;
  at_ = when;
  const std::uint64_t call = ++latest_;
  clock_.at(when, [this, call, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) come(call);
  });
}

void Alarm::come(std::uint64_t call) {
  if (call != latest_) return;
  at_ = kNever;
  ring_();
}

}  // namespace tw::train
