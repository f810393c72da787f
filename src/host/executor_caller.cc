// SPDX-License-Identifier: Apache-2.0
#include "host/executor_caller.h"

#include <algorithm>
#include <utility>

#include "host/task_failure.h"

namespace tw::host {

class CallerExecutor::Visit {
 public:
  explicit Visit(CallerExecutor& executor) : executor_(executor) { set({}); }

  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  ~Visit() { set(std::chrono::steady_clock::now()); }

 private:
  void set(std::optional<Moment> deserted_since) {
    const std::lock_guard lock(executor_.mutex_);
    executor_.deserted_since_ = deserted_since;
  }

  CallerExecutor& executor_;
};

CallerExecutor::CallerExecutor(Loop& loop, std::function<void(const std::string&)> on_failure)
    : loop_(loop), on_failure_(std::move(on_failure)), deserted_since_(std::chrono::steady_clock::now()) {}

CallerExecutor::~CallerExecutor() = default;

void CallerExecutor::submit(world::Task job) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.empty() && deserted_since_) deserted_since_ = std::chrono::steady_clock::now();
    jobs_.push_back({std::move(job), ++submitted_});
  }
  changed_.notify_one();
}

bool CallerExecutor::take_back() {
  world::Task dropped;  // it ends after the lock
  const std::lock_guard lock(mutex_);
  const auto gradient = std::ranges::find_if(jobs_, [](const Waiting& job) { return job.task.gradient; });
  if (gradient == jobs_.end()) return false;
  dropped = std::move(gradient->task);
  jobs_.erase(gradient);
  handed_out_ = 0;
  return true;
}

Duration CallerExecutor::deserted_for() const {
  const std::lock_guard lock(mutex_);
  if (jobs_.empty() || !deserted_since_) return {};
  return std::chrono::steady_clock::now() - *deserted_since_;
}

void CallerExecutor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

std::string CallerExecutor::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

CallerExecutor::News CallerExecutor::work_until_gradient(Duration limit) {
  const Visit visit(*this);
  const Moment end = std::chrono::steady_clock::now() + limit;
  std::unique_lock lock(mutex_);
  while (true) {
    if (!changed_.wait_until(lock, end, [this] { return stopped_ || !jobs_.empty(); })) return News::nothing;
    if (stopped_) return News::stopped;
    if (is_handed_out()) return News::gradient;
    const Moment now = std::chrono::steady_clock::now();
    if (jobs_.front().task.gradient) {
      handed_out_ = jobs_.front().number;
      handed_out_at_ = now;
      return News::gradient;
    }
    world::Task job = std::move(jobs_.front().task);
    jobs_.pop_front();
    lock.unlock();
    perform(std::move(job), now);
    lock.lock();
  }
}

bool CallerExecutor::gradient_ready() {
  const Visit visit(*this);
  std::unique_lock lock(mutex_);
  if (!is_handed_out()) return false;
  world::Task job = std::move(jobs_.front().task);
  jobs_.pop_front();
  handed_out_ = 0;
  const Moment since = handed_out_at_;
  lock.unlock();
  perform(std::move(job), since);
  return true;
}

void CallerExecutor::perform(world::Task job, Moment since) {
  const std::string failure = failure_of(job.run);
  const Duration took = std::chrono::steady_clock::now() - since;
  if (!failure.empty()) {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    failure_ = failure;
  }
  // The job goes along, so that what it holds is released on the loop thread.
  loop_.post(life_.tie([this, job = std::move(job), failure, took] {
    if (!failure.empty()) return on_failure_(failure);
    if (job.done) job.done(took);
  }));
}

}  // namespace tw::host
