// SPDX-License-Identifier: Apache-2.0
#include "timeline.h"

#include <c10/util/ApproximateClock.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sim {
namespace {

constexpr double kLaunch = 5e-6;  // what a launch costs the host, s (CUDA: 4 to 7 us)

void merge(Clock& clock, const Clock& other) {
  for (const auto& [stream, position] : other) clock[stream] = std::max(clock[stream], position);
}

}  // namespace

void fault(const std::string& what) {
  std::fprintf(stderr, "sim: %s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

Timeline& timeline() {
  static auto* one = new Timeline;  // tensors that outlive main() come here
  return *one;
}

Timeline::Pause::Pause() {
  Timeline& all = timeline();
  std::lock_guard lock(all.mutex_);
  if (all.pauses_++ == 0 && all.real_host_)
    all.host_s_ += 1e-9 * static_cast<double>(c10::getTime() - all.left_ns_);
}

Timeline::Pause::~Pause() {
  Timeline& all = timeline();
  std::lock_guard lock(all.mutex_);
  if (--all.pauses_ == 0) all.left_ns_ = c10::getTime();
}

void Timeline::begin(uint64_t seed, Order order, bool real_host) {
  std::lock_guard lock(mutex_);
  for (size_t stream = 0; stream < streams_.size(); ++stream) finish_stream(static_cast<int>(stream));
  random_.seed(seed);
  order_ = order;
  real_host_ = real_host;
  host_s_ = bus_free_s_ = 0;
  for (Stream& stream : streams_) stream.free_s = 0;
  counts_ = {};
  left_ns_ = c10::getTime();
}

int Timeline::make_stream(int device) {
  std::lock_guard lock(mutex_);
  streams_.push_back({.device = device});
  return static_cast<int>(streams_.size()) - 1;
}

int Timeline::device_of(int stream) {
  std::lock_guard lock(mutex_);
  return streams_.at(stream).device;
}

uint64_t Timeline::give(int number, Job job) {
  const Pause pause;
  std::lock_guard lock(mutex_);
  Stream& stream = streams_.at(number);
  host_s_ += kLaunch;
  ++counts_.launches;
  double begin = std::max(stream.free_s, host_s_);
  if (job.crosses) begin = std::max(begin, bus_free_s_);
  stream.free_s = begin + job.seconds;
  if (job.crosses) bus_free_s_ = stream.free_s;
  stream.left.push_back(std::move(job));
  const uint64_t position = stream.clock[number] = ++stream.given;
  let_some_run();
  return position;
}

Mark Timeline::mark(int number) {
  std::lock_guard lock(mutex_);
  const Stream& stream = streams_.at(number);
  return {number, stream.clock, stream.free_s};
}

void Timeline::wait(int number, const Mark& mark) {
  if (mark.stream < 0) return;
  const Pause pause;
  std::lock_guard lock(mutex_);
  Stream& stream = streams_.at(number);
  stream.free_s = std::max(stream.free_s, mark.at_s);
  merge(stream.clock, mark.clock);
  stream.left.push_back({"wait", 0, false, [this, clock = mark.clock] {
                           for (const auto& [other, position] : clock) run_until(other, position);
                         }});
  stream.clock[number] = ++stream.given;
  let_some_run();
}

void Timeline::finish(const Mark& mark) {
  if (mark.stream < 0) return;
  const Pause pause;
  std::lock_guard lock(mutex_);
  ++counts_.waits;
  for (const auto& [stream, position] : mark.clock) run_until(stream, position);
  host_s_ = std::max(host_s_, mark.at_s);
  learn(mark.clock);
}

void Timeline::finish_stream(int stream) { finish(mark(stream)); }

void Timeline::finish_device(int device) {
  const Pause pause;
  std::lock_guard lock(mutex_);
  ++counts_.device_waits;
  for (size_t stream = 0; stream < streams_.size(); ++stream)
    if (streams_[stream].device == device) finish_stream(static_cast<int>(stream));
}

bool Timeline::is_done(const Mark& mark) {
  if (mark.stream < 0) return true;
  const Pause pause;
  std::lock_guard lock(mutex_);
  const bool is_in_time = !real_host_ || host_s_ >= mark.at_s;
  bool has_run = true;
  for (const auto& [stream, position] : mark.clock)
    has_run = has_run && streams_.at(stream).given - streams_.at(stream).left.size() >= position;
  if (has_run && is_in_time) {
    learn(mark.clock);
    return true;
  }
  if (!streams_.at(mark.stream).left.empty()) run_one(mark.stream);
  return false;
}

void Timeline::run_until(int number, uint64_t position) {
  Stream& stream = streams_.at(number);
  while (!stream.left.empty() && stream.given - stream.left.size() < position) run_one(number);
}

void Timeline::run_one(int number) {
  // A deque: a wait runs other streams, and this one gets nothing meanwhile.
  const Job job = std::move(streams_.at(number).left.front());
  streams_.at(number).left.pop_front();
  if (job.run) job.run();
}

void Timeline::let_some_run() {
  const int count = static_cast<int>(streams_.size());
  switch (order_) {
    case Order::kLate:
      return;
    case Order::kAtOnce:
      for (int stream = 0; stream < count; ++stream) run_until(stream, streams_[stream].given);
      return;
    case Order::kNewStreamsFirst:
    case Order::kOldStreamsFirst: {
      // Default streams are the first two.
      for (int stream = 0; stream < count; ++stream)
        if ((stream < 2) == (order_ == Order::kOldStreamsFirst)) run_until(stream, streams_[stream].given);
      return;
    }
    case Order::kRandom:
      for (int stream = 0; stream < count; ++stream)
        for (uint64_t some = random_() % 8; some > 4 && !streams_[stream].left.empty(); --some)
          run_one(stream);
  }
}

void Timeline::learn(const Clock& clock) {
  merge(host_, clock);
  for (const OpenCopy& copy : open_)
    if (host_knows(copy.stream, copy.position) && copy.check) copy.check();
  std::erase_if(open_, [this](const OpenCopy& copy) { return host_knows(copy.stream, copy.position); });
}

bool Timeline::host_knows(int stream, uint64_t position) const {
  const auto found = host_.find(stream);
  return found != host_.end() && found->second >= position;
}

void Timeline::open(OpenCopy copy) {
  std::lock_guard lock(mutex_);
  if (!host_knows(copy.stream, copy.position)) open_.push_back(std::move(copy));
}

const OpenCopy* Timeline::open_at(uintptr_t begin, uintptr_t end, bool writes, int ordered_on) {
  std::lock_guard lock(mutex_);
  for (const OpenCopy& copy : open_) {
    if (copy.end <= begin || end <= copy.begin || (!writes && !copy.writes)) continue;
    if (ordered_on >= 0) {
      const Clock& known = streams_.at(ordered_on).clock;
      const auto found = known.find(copy.stream);
      if (found != known.end() && found->second >= copy.position) continue;
    }
    return &copy;
  }
  return nullptr;
}

double Timeline::host_seconds() {
  const Pause pause;
  std::lock_guard lock(mutex_);
  return host_s_;
}

void Timeline::count_copy(int64_t bytes, bool to_host, bool late_to_pageable) {
  std::lock_guard lock(mutex_);
  ++counts_.copies;
  counts_.late_to_pageable += late_to_pageable;
  (to_host ? counts_.bytes_to_host : counts_.bytes_to_device) += bytes;
}

Counts Timeline::counts() {
  std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace sim
