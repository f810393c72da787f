// SPDX-License-Identifier: Apache-2.0
#include "sim/world/executor.h"

#include <utility>

namespace tw {

void VirtualExecutor::submit(Task job) {
  jobs_.push_back(std::move(job));
  if (jobs_.size() > 1) return;
  // Not from inside submit: the thread of a real executor takes the job, not the caller.
  process_.at(process_.scheduler().now(), [this] { begin(); });
}

void VirtualExecutor::begin() {
  const double seconds = jobs_.front().weight / pace_.weight_per_s + to_seconds(pace_.least);
  takes_ = from_seconds(seconds * (1 + pace_.jitter * random_.uniform()));
  began_ = process_.scheduler().now();
  stopped_at_begin_ = process_.stopped_for();
  early_ = random_.chance(0.5);
  if (early_) jobs_.front().run();
  process_.at(began_ + takes_, [this] { finish(); });
}

void VirtualExecutor::finish() {
  const Instant now = process_.scheduler().now();
  const Duration worked = (now - began_) - (process_.stopped_for() - stopped_at_begin_);
  if (worked < takes_) {
    process_.at(now + (takes_ - worked), [this] { finish(); });
    return;
  }
  if (!early_) jobs_.front().run();
  const Task job = std::move(jobs_.front());
  const Duration took = now - began_;
  jobs_.pop_front();
  if (busy()) begin();
  job.done(took);
}

}  // namespace tw
