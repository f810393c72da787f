// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace tw::train {

/// Progress of a job, in steps of its own. Written by the thread that runs it, read by any.
class WorkMeter {
 public:
  void begin(std::uint64_t steps) {
    done_ = 0;
    total_ = steps;
  }

  void step() { ++done_; }

  std::uint64_t done() const { return done_; }

  /// 0: the job reports none.
  std::uint64_t total() const { return total_; }

 private:
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> total_ = 0;
};

}  // namespace tw::train
