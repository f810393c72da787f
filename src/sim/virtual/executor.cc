// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/executor.h"

#include <algorithm>
#include <utility>

namespace tw::sim {

void VirtualExecutor::submit(world::Task job) {
  jobs_.push_back(std::move(job));
  if (jobs_.size() > 1) return;
  // Not from inside submit: the thread of a real executor takes the job, not the caller.
  later(process_.scheduler().now(), &VirtualExecutor::begin);
}

void VirtualExecutor::later(Instant when, void (VirtualExecutor::*step)()) {
  process_.at(when, [this, step, number = ++step_] {
    if (number == step_) (this->*step)();
  });
}

void VirtualExecutor::stand(Instant until) { stands_until_ = std::max(stands_until_, until); }

void VirtualExecutor::come_back() {
  away_until_ = {};
  stands_until_ = {};
  if (busy() && !begun_) later(process_.scheduler().now(), &VirtualExecutor::begin);
}

bool VirtualExecutor::take_back() {
  const bool stands = process_.scheduler().now() < stands_until_;
  const auto gradient = std::ranges::find_if(jobs_, &world::Task::gradient);
  if (!stands || begun_ || gradient == jobs_.end()) return false;
  jobs_.erase(gradient);
  ++step_;
  if (!busy()) deserted_since_ = kNever;
  if (busy()) later(stands_until_, &VirtualExecutor::begin);
  return true;
}

Duration VirtualExecutor::deserted_for() const {
  return deserted_since_ == kNever ? Duration{} : process_.scheduler().now() - deserted_since_;
}

void VirtualExecutor::begin() {
  early_ = false;
  if (jobs_.front().gradient) stand(away_until_);
  const Instant now = process_.scheduler().now();
  if (now < stands_until_) {
    deserted_since_ = std::min(deserted_since_, now);
    return later(stands_until_, &VirtualExecutor::begin);
  }
  deserted_since_ = kNever;
  begun_ = true;
  const double seconds = jobs_.front().weight / pace_.weight_per_s + to_seconds(pace_.least);
  takes_ = from_seconds(seconds * (1 + pace_.jitter * random_.uniform()));
  began_ = now;
  stopped_at_begin_ = process_.stopped_for();
  early_ = random_.chance(0.5);
  if (early_) jobs_.front().run();
  later(began_ + takes_, &VirtualExecutor::finish);
}

void VirtualExecutor::finish() {
  const Instant now = process_.scheduler().now();
  const Duration worked = (now - began_) - (process_.stopped_for() - stopped_at_begin_);
  if (worked < takes_) return later(now + (takes_ - worked), &VirtualExecutor::finish);
  if (!early_) jobs_.front().run();
  const world::Task job = std::move(jobs_.front());
  const Duration took = now - began_;
  jobs_.pop_front();
  begun_ = false;
  if (busy()) begin();
  job.done(took);
}

}  // namespace tw::sim
