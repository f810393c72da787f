// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "host/lifeline.h"
#include "host/loop.h"
#include "world/executor.h"

namespace tw::host {

/// The Executor door whose thread belongs to the program around the engine: jobs wait until that thread
/// calls. A gradient is the program's own work: its job is handed out first, and runs once the program
/// reports that it is ready. Created and destroyed on the loop thread, with no other thread inside; no done
/// or on_failure comes after that.
class CallerExecutor final : public world::Executor {
 public:
  /// on_failure: called with the exception of a job, instead of its done. Later jobs do not run. Loop thread.
  CallerExecutor(Loop& loop, std::function<void(const std::string& what)> on_failure);
  ~CallerExecutor() override;
  CallerExecutor(const CallerExecutor&) = delete;
  CallerExecutor& operator=(const CallerExecutor&) = delete;

  /// Any thread.
  void submit(world::Task job) override;

  /// Loop thread.
  bool take_back() override;

  /// Loop thread.
  Duration deserted_for() const override;

  /// From any thread: work_until_gradient returns at once, now and later.
  void stop();

  /// The exception of a job, if any: no further job runs. Any thread.
  std::string failure() const;

  // ---- the program's thread

  enum class News {
    gradient,  ///< a gradient is due: call gradient_ready() next
    nothing,   ///< the limit passed
    stopped,
  };

  /// Runs jobs until a gradient is due, which is then handed out, or was handed out before.
  News work_until_gradient(Duration limit);

  /// Runs the job of the handed-out gradient; its time counts from the hand-out. False, without effect: it
  /// was taken back meanwhile, or none was handed out.
  bool gradient_ready();

 private:
  struct Waiting {
    world::Task task;
    std::uint64_t number = 0;
  };

  using Moment = std::chrono::steady_clock::time_point;

  /// While it exists, the program's thread is inside. Locks.
  class Visit;

  void perform(world::Task job, Moment since);

  bool is_handed_out() const { return !jobs_.empty() && jobs_.front().number == handed_out_; }

  Loop& loop_;
  std::function<void(const std::string&)> on_failure_;
  Lifeline life_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> jobs_;  // guarded by mutex_, and so is all below
  std::uint64_t submitted_ = 0;
  std::uint64_t handed_out_ = 0;  // number of a job; 0: none
  Moment handed_out_at_{};
  std::optional<Moment> deserted_since_;  // jobs wait, or would wait, for the thread; empty: it is inside
  bool stopped_ = false;
  std::string failure_;
};

}  // namespace tw::host
