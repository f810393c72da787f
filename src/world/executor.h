// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/time.h"

namespace tw::world {

/// A long piece of work. `run` runs away from the loop thread; `done` on it, with the time that `run` took.
struct Task {
  std::function<void()> run;
  std::function<void(Duration took)> done;
  /// Relative weight (samples of a microbatch, for example), from which the simulator draws the running time.
  double weight = 0;
  /// Computes gradients. The user's own compute thread may take long to get to it.
  bool gradient = false;
};

/// Door to one thread of work: jobs run one after the other in the order of submission.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual void submit(Task job) = 0;

  /// Takes back the gradient task that comes next: neither `run` nor `done` is called. False if there is
  /// none, or it runs already. Loop thread.
  virtual bool take_back() { return false; }

  /// How long jobs have waited for a thread that does something else; 0: it is at work, or there is no job.
  /// Loop thread.
  virtual Duration deserted_for() const { return {}; }
};

}  // namespace tw::world
