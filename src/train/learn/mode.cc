// SPDX-License-Identifier: Apache-2.0
#include "train/learn/mode.h"

namespace tw::train {

WorkDone SyncMode::work(TrainState& state, const swarm::WorkItem& item, GradientSlot& slot) {
  if (auto missing = state.load(item.samples, item.skips))
    return {.news = state.take_load_news(), .missing = std::move(missing)};
  state.lead(item.leads);
  WorkDone done{item.microbatches.count(), item.samples.count()};
  done.loss_sum = state.accumulate(item.round, slot, item.samples);
  done.news = state.take_load_news();
  return done;
}

SlotValues SyncMode::contribution(TrainState& state, std::uint32_t slot) {
  const auto& sum = state.slot(slot).sum;
  return {{*sum, sum}, state.carried(slot)};
}

Result<Digest> SyncMode::apply(TrainState& state, const average::Geometry& geometry, const Update& update) {
  const Round round = update.record.round;
  if (update.missed) return state.apply_missed(update.record, geometry, update.mean);
  state.keep_losses(round, geometry, update.own, update.kept);
  return state.apply(round, geometry, update.mean, update.record.settings);
}

}  // namespace tw::train
