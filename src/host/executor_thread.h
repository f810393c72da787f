// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "host/lifeline.h"
#include "host/loop.h"
#include "world/executor.h"

namespace tw::host {

/// The Executor door with one thread. Submit from any thread; created and destroyed on the loop thread, which
/// waits for the job that runs and drops the others; no done or on_failure comes after that.
class ThreadExecutor : public world::Executor {
 public:
  /// on_failure: called with the exception of a job, instead of its done. The next jobs still run.
  ThreadExecutor(Loop& loop, std::function<void(const std::string& what)> on_failure);
  ~ThreadExecutor() override;
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;

  void submit(world::Task job) override;

 private:
  void work();
  void perform(world::Task job);

  Loop& loop_;
  std::function<void(const std::string&)> on_failure_;
  Lifeline life_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<world::Task> jobs_;  // guarded by mutex_
  bool closing_ = false;          // guarded by mutex_
  std::thread thread_;            // last: it uses all of the above
};

}  // namespace tw::host
