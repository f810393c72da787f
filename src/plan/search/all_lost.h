// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/model/checkpoint_interval.h"
#include "plan/search/search.h"

/// Only the loss of all peers at once takes a run back to a checkpoint. A single spot machine is all of them;
/// of several, a shock takes all together, or the last one goes while the others are waited for.
namespace tw::plan {

/// How often the peers of a plan write checkpoints, and what that costs together with work done again.
struct Checkpoints {
  CheckpointCost cost;    ///< mtbf_s: between two losses of all peers; 0: never at once
  double interval_s = 0;  ///< work between two of them, the exact optimum; 0: none is needed

  /// Time for each second of work, from 1.
  double wall_per_work() const;
};

/// Machines are taken independently of each other, but by shocks. A machine whose notice is long enough for a
/// checkpoint loses nothing.
Checkpoints checkpoints_of(const Space& space, const std::vector<int>& counts);

}  // namespace tw::plan
