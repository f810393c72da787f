// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "train/learn/learner.h"
#include "train/learn/mode.h"
#include "train/learn/state.h"
#include "train/run/run.h"
#include "world/executor.h"

namespace tw::train {

/// The engine's own learner: a trainer for the gradients, an optimizer of train/learn/optimizer.h for the
/// updates, both on the compute executor, and a mode that combines them.
class EngineLearner final : public Learner {
 public:
  struct Options {
    RunOptions run;
    average::Geometry geometry;  ///< of the mean
    std::uint64_t chunk_bytes = 0;
    std::uint64_t grain = 1;  ///< Learner::grain
    // owners: the learner and the job that runs
    std::shared_ptr<train::Mode> mode = std::make_shared<train::SyncMode>();
  };

  /// beside: copies the state beside gradients and evaluations. Executors and trainer outlive this object,
  /// and the trainer its jobs.
  EngineLearner(Trainer& trainer, const Options& options, world::Executor& compute, world::Executor& beside);

  std::uint64_t grain() const override { return grain_; }

  /// With a state that is shared.
  // owners: the learner, its jobs, and whoever keeps the vectors
  EngineLearner(std::shared_ptr<TrainState> state, const Options& options, world::Executor& compute,
                world::Executor& beside);

  void expect(const RangeSet& samples) override;
  std::optional<data::LoadWait> waiting_for_data() const override;
  void work(const swarm::WorkItem& item, Done<WorkDone> done) override;

  bool take_back() override { return compute_.take_back(); }

  Duration deserted_for() const override { return compute_.deserted_for(); }

  void knock(Done<Unit> done) override;
  SlotValues contribution(std::uint32_t slot) override;
  void forget_sums() override;
  void apply(Update update, Done<Result<Digest>> done) override;
  void freeze(const wire::Record& record, Turn turn, Done<Image> done) override;
  void restore(Image image, Done<Result<Digest>> done) override;
  // owners: the job, and whoever shows how far it is
  void evaluate(std::shared_ptr<WorkMeter> meter, Done<Evaluation> done) override;

 private:
  // owners: the learner and the job that runs
  using State = std::shared_ptr<TrainState>;

  State state_;
  std::shared_ptr<train::Mode> mode_;  // owners: the learner and the job that runs
  average::Geometry geometry_;
  std::uint64_t chunk_bytes_;
  std::uint64_t grain_;
  world::Executor& compute_;
  world::Executor& beside_;
};

}  // namespace tw::train
