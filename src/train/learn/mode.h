// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/learn/learner.h"
#include "train/learn/state.h"

namespace tw::train {

/// What a peer contributes to a step, and what the mean of a step does to its state. Neither swarm/ nor
/// average/ knows it: they divide samples and average vectors. swarm::LeaseRules decides when a round ends.
/// work() and apply() run on the compute thread, contribution() on the loop thread, for a slot that is no
/// longer written to.
class Mode {
 public:
  virtual ~Mode() = default;

  /// Adds the gradients of the item, or of its first microbatches, to this slot.
  virtual WorkDone work(TrainState& state, const swarm::WorkItem& item, GradientSlot& slot) = 0;

  /// The contribution of this slot: valid and unchanged until apply().
  virtual SlotValues contribution(TrainState& state, std::uint32_t slot) = 0;

  /// Applies the mean to the state; otherwise as Learner::apply.
  virtual Result<Digest> apply(TrainState& state, const average::Geometry& geometry,
                               const Update& update) = 0;
};

/// All peers compute with the same parameters: a contribution is the gradient sum of its samples, and the
/// mean is one step of the optimizer.
class SyncMode final : public Mode {
 public:
  WorkDone work(TrainState& state, const swarm::WorkItem& item, GradientSlot& slot) override;
  SlotValues contribution(TrainState& state, std::uint32_t slot) override;
  Result<Digest> apply(TrainState& state, const average::Geometry& geometry, const Update& update) override;
};

}  // namespace tw::train
