// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <utility>

#include "base/time.h"
#include "sim/virtual/scheduler.h"

namespace tw::sim {

/// A process as its kernel sees it: timers, messages and finished jobs enter here, waits while it is stopped,
/// and is dropped once it is dead. Must outlive the scheduler's calls into it.
class Process {
 public:
  enum class State { running, stopped, dead };

  explicit Process(Scheduler& scheduler) : scheduler_(scheduler) {}

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Scheduler& scheduler() { return scheduler_; }

  State state() const { return state_; }

  bool dead() const { return state_ == State::dead; }

  /// Schedules a call at this time.
  template <class F>
  void at(Instant when, F call) {
    scheduler_.at(when, [this, call = std::move(call)]() mutable { enter(std::move(call)); });
  }

  /// Runs the call now, after waiting ones, if there are any.
  template <class F>
  void enter(F call) {
    if (dead()) return;
    if (state_ == State::running && waiting_.empty()) return call();
    waiting_.emplace_back(std::move(call));
  }

  /// SIGSTOP, SIGCONT and SIGKILL.
  void stop();
  void resume();
  void kill();

  /// Time spent stopped, up to now.
  Duration stopped_for() const;

 private:
  void drain();

  Scheduler& scheduler_;
  State state_ = State::running;
  std::deque<Call> waiting_;
  bool draining_ = false;  ///< a call of drain() is scheduled
  Duration stopped_before_{};
  Instant stopped_since_{};
};

}  // namespace tw::sim
