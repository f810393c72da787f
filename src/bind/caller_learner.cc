// SPDX-License-Identifier: Apache-2.0
#include "bind/caller_learner.h"

#include <utility>

namespace tw::bind {

train::WorkDone CallerMode::work(train::TrainState& state, const swarm::WorkItem& item,
                                 train::GradientSlot& slot) {
  const std::span<float> sum = state.open(item.round, slot);
  const HandIn handed = std::exchange(hand_in_, {});
  add_tensors(handed.gradients, static_cast<float>(handed.weight), sum);
  return handed.done;
}

train::SlotValues CallerMode::contribution(train::TrainState& state, std::uint32_t slot) {
  return sync_.contribution(state, slot);
}

Result<Digest> CallerMode::apply(train::TrainState& state, const average::Geometry& geometry,
                                 const train::Update& update) {
  return sync_.apply(state, geometry, update);
}

swarm::WorkItem CallerLearner::item() const {
  const std::lock_guard lock(mutex_);
  return item_;
}

void CallerLearner::work(const swarm::WorkItem& item, Done<train::WorkDone> done) {
  {
    const std::lock_guard lock(mutex_);
    item_ = item;
  }
  engine_->work(item, std::move(done));
}

}  // namespace tw::bind
