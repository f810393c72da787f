// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <memory>

#include "world/clock.h"

namespace asio {
class io_context;
}

namespace tw::host {

/// The one loop thread of a process and its clock. The thread that calls run (or run_until) is the loop
/// thread; functions given to a Loop are called there. Outlives everything that holds a reference to it.
class Loop : public world::Clock {
 public:
  Loop();
  ~Loop() override;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Instant now() override;
  std::int64_t unix_nanos() override;
  void at(Instant when, std::function<void()> call) override;

  /// Runs until stop, even when there is nothing to do. Exceptions of calls leave this function.
  void run();

  /// Runs until done() holds, checked after each step; false when it does not within the limit or the loop
  /// was stopped.
  bool run_until(const std::function<bool()>& done, Duration limit);

  /// From any thread.
  void stop();

  /// From any thread: calls on the loop thread, soon, in the order of posting, never from inside post.
  void post(std::function<void()> call);

  /// Calls for each of these signals that arrives, or arrived early (early_signals.h). The signals no longer
  /// end the process.
  void on_signal(std::function<void(int signal)> call,
                 std::initializer_list<int> signals = {SIGINT, SIGTERM});

  /// For host alone.
  asio::io_context& context();

 private:
  struct Kernel;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace tw::host
