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
/// thread; whatever is given to a Loop is called there. Outlives everything that holds a reference to it.
class Loop : public world::Clock {
 public:
  Loop();
  ~Loop() override;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Instant now() override;
  std::int64_t unix_nanos() override;
  void at(Instant when, std::function<void()> call) override;

  /// Until stop, even when nothing is left to do. What a call throws comes out of here.
  void run();

  /// Until done() holds, as asked after each step; false when it does not within the limit or the loop was
  /// stopped.
  bool run_until(const std::function<bool()>& done, Duration limit);

  /// From any thread.
  void stop();

  /// From any thread: calls on the loop thread, soon, in the order of posting, never from inside post.
  void post(std::function<void()> call);

  /// Calls with each of these signals that arrives, or came early (early_signals.h); from now on it does not
  /// end the process any more.
  void on_signal(std::function<void(int signal)> call,
                 std::initializer_list<int> signals = {SIGINT, SIGTERM});

  /// For host alone.
  asio::io_context& context();

 private:
  struct Kernel;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace tw::host
