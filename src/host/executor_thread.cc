// SPDX-License-Identifier: Apache-2.0
#include "host/executor_thread.h"

#include <chrono>
#include <utility>

#include "host/task_failure.h"

namespace tw::host {

ThreadExecutor::ThreadExecutor(Loop& loop, std::function<void(const std::string&)> on_failure)
    : loop_(loop), on_failure_(std::move(on_failure)), thread_([this] { work(); }) {}

ThreadExecutor::~ThreadExecutor() {
  std::deque<world::Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    dropped.swap(jobs_);
  }
  changed_.notify_one();
  dropped.clear();
  thread_.join();
}

void ThreadExecutor::submit(world::Task job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void ThreadExecutor::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
    if (closing_) return;
    world::Task job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    perform(std::move(job));
    lock.lock();
  }
}

void ThreadExecutor::perform(world::Task job) {
  const auto start = std::chrono::steady_clock::now();
  const std::string failure = failure_of(job.run);
  const Duration took = std::chrono::steady_clock::now() - start;
  // The job goes along, so that what it holds is released on the loop thread.
  loop_.post(life_.tie([this, job = std::move(job), failure, took] {
    if (!failure.empty()) return on_failure_(failure);
    if (job.done) job.done(took);
  }));
}

}  // namespace tw::host
