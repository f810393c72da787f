// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "base/prng.h"
#include "sim/virtual/process.h"
#include "world/executor.h"

namespace tw::sim {

/// Speed of a thread.
struct Pace {
  double weight_per_s = 1e9;                       ///< a job takes its weight / weight_per_s
  Duration least = std::chrono::microseconds(20);  ///< and this on top
  double jitter = 0.1;  ///< share of that time, uniform in [0, jitter), that comes on top
};

/// A thread of a virtual process. Whether a job's work happens at the beginning or at the end of its time is
/// drawn for each job: a user that touches the job's data meanwhile sees other results. Time goes on only
/// while the process runs.
class VirtualExecutor final : public world::Executor {
 public:
  VirtualExecutor(Process& process, Pace pace, std::uint64_t seed)
      : process_(process), pace_(pace), random_(seed) {}

  void submit(world::Task job) override;

  /// Takes back a gradient task that waits for a thread which is away.
  bool take_back() override;

  Duration deserted_for() const override;

  /// The thread belongs to a program that is busy until then, from its next gradient on: until that it is
  /// inside the engine.
  void go_away(Instant until) { away_until_ = until; }

  /// It begins nothing until then.
  void stand(Instant until);

  /// Ends both.
  void come_back();

  bool busy() const { return !jobs_.empty(); }

 private:
  void begin();
  void finish();
  void later(Instant when, void (VirtualExecutor::*step)());

  Process& process_;
  Pace pace_;
  Prng random_;
  std::deque<world::Task> jobs_;  ///< the first one is under way
  bool begun_ = false;
  bool early_ = false;  ///< its work is done already
  Instant began_{};
  Duration takes_{};
  Duration stopped_at_begin_{};
  Instant away_until_{};  ///< once a gradient is due
  Instant stands_until_{};
  Instant deserted_since_ = kNever;  ///< a job waits; kNever: none does
  std::uint64_t step_ = 0;           ///< that comes next: others do not come any more
};

}  // namespace tw::sim
