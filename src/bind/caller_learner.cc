// SPDX-License-Identifier: Apache-2.0
#include "bind/caller_learner.h"

#include <utility>

namespace tw::bind {

WorkDone CallerMode::work(TrainState& state, const WorkItem& item, GradientSlot& slot) {
  const std::span<float> sum = state.open(item.round, slot);
  const HandIn handed = std::exchange(hand_in_, {});
  add_tensors(handed.gradients, static_cast<float>(handed.weight), sum);
  return handed.done;
}

SlotValues CallerMode::contribution(TrainState& state, std::uint32_t slot) {
  return sync_.contribution(state, slot);
}

Result<Digest> CallerMode::apply(TrainState& state, const Geometry& geometry, const Update& update) {
  return sync_.apply(state, geometry, update);
}

WorkItem CallerLearner::item() const {
  const std::lock_guard lock(mutex_);
  return item_;
}

void CallerLearner::work(const WorkItem& item, Done<WorkDone> done) {
  {
    const std::lock_guard lock(mutex_);
    item_ = item;
  }
  engine_->work(item, std::move(done));
}

}  // namespace tw::bind
