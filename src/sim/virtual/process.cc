// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/process.h"

#include <utility>

namespace tw::sim {

void Process::stop() {
  if (state_ != State::running) return;
  state_ = State::stopped;
  stopped_since_ = scheduler_.now();
}

void Process::resume() {
  if (state_ != State::stopped) return;
  stopped_before_ += scheduler_.now() - stopped_since_;
  state_ = State::running;
  drain();
}

void Process::kill() {
  state_ = State::dead;
  waiting_.clear();
}

Duration Process::stopped_for() const {
  return state_ == State::stopped ? stopped_before_ + (scheduler_.now() - stopped_since_) : stopped_before_;
}

// One call an event: what runs may stop or kill the process.
void Process::drain() {
  if (draining_ || waiting_.empty()) return;
  draining_ = true;
  scheduler_.after(Duration{}, [this] {
    draining_ = false;
    if (state_ != State::running || waiting_.empty()) return;
    Call call = std::move(waiting_.front());
    call();
    if (!waiting_.empty()) waiting_.pop_front();
    drain();
  });
}

}  // namespace tw::sim
