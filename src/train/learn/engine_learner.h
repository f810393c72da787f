// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "train/learn/learner.h"
#include "train/learn/state.h"
#include "train/run/run.h"
#include "world/executor.h"

namespace tw::train {

/// A model for the gradients and a TrainState for the updates, both on the compute executor. All peers
/// compute with the same parameters: a contribution is the gradient sum of its samples, and the mean is one
/// step of the optimizer.
class EngineLearner final : public Learner {
 public:
  struct Options {
    RunOptions run;
    average::Fragments fragments;
    std::uint64_t chunk_bytes = 0;
    std::uint64_t grain = 1;  ///< Learner::grain
  };

  /// beside: copies the state, and settles losses, beside gradients. Executors and model outlive this object,
  /// and the model its jobs.
  EngineLearner(Model& model, const Options& options, world::Executor& compute, world::Executor& beside);

  /// With a state that is shared.
  // owners: the learner, its jobs, and whoever keeps the vectors
  EngineLearner(std::shared_ptr<TrainState> state, const Options& options, world::Executor& compute,
                world::Executor& beside);

  std::uint64_t grain() const override { return grain_; }

  void work(const swarm::WorkItem& item, Done<WorkDone> done) override;

  bool take_back() override { return compute_.take_back(); }

  Duration deserted_for() const override { return compute_.deserted_for(); }

  void knock(Done<Unit> done) override;
  SlotValues contribution(Round round, std::uint32_t slot) override;

  bool has_uncollected(Round round) const override { return state_->has_uncollected(round); }

  void collect(Round round, Done<Unit> done) override;
  void forget_sums(Round round) override;
  void move_on(Done<Unit> done) override;

  bool has_moved_on() const override { return state_->has_moved_on(); }

  Digest settle(const wire::Record& anew) override { return state_->settle(anew); }

  void apply(Update update, Done<Result<Digest>> done) override;
  void freeze(const wire::Record& record, Turn turn, Done<Image> done) override;
  void restore(Image image, Done<Result<Digest>> done) override;

 private:
  // owners: the learner and the job that runs
  using State = std::shared_ptr<TrainState>;

  Done<Result<Digest>> then_settle_losses(Done<Result<Digest>> done);

  State state_;
  std::uint64_t chunk_bytes_;
  std::uint64_t grain_;
  bool settles_losses_beside_;
  world::Executor& compute_;
  world::Executor& beside_;
};

}  // namespace tw::train
