// SPDX-License-Identifier: Apache-2.0
#include "bind/caller_learner.h"

#include <algorithm>
#include <utility>

namespace tw::bind {

void CallerWork::initial_parameters(std::span<float> out) { std::ranges::copy(initial_, out.begin()); }

train::WorkDone CallerWork::work(std::span<const float>, const swarm::WorkItem&,
                                 std::span<float> gradient_sum) {
  const HandIn handed = std::exchange(hand_in_, {});
  if (!handed.gradients.empty())
    add_tensors(handed.gradients, static_cast<float>(handed.weight), gradient_sum, handed.threads);
  return handed.done;
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
