// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "bind/caller_model.h"
#include "train/learn/engine_learner.h"
#include "train/learn/mode.h"

namespace tw::bind {

/// Results that the program hands in for an order, only during tw_done.
struct HandIn {
  std::span<const tw_tensor> gradients;
  double weight = 0;
  train::WorkDone done;
};

/// Like SyncMode, but the program computes: work() adds its results.
class CallerMode final : public train::Mode {
 public:
  /// The program's thread, before the job of its gradient runs.
  void hand_in(const HandIn& hand_in) { hand_in_ = hand_in; }

  train::WorkDone work(train::TrainState& state, const swarm::WorkItem& item,
                       train::GradientSlot& slot) override;
  train::SlotValues contribution(train::TrainState& state, std::uint32_t slot) override;
  Result<Digest> apply(train::TrainState& state, const average::Geometry& geometry,
                       const train::Update& update) override;

 private:
  train::SyncMode sync_;
  HandIn hand_in_;
};

/// The learner whose compute thread is the program's: an engine's learner that knows the order in hand.
class CallerLearner final : public train::Learner {
 public:
  CallerLearner(std::unique_ptr<train::EngineLearner> engine, std::uint64_t grain)
      : train::Learner(engine->size()), engine_(std::move(engine)), grain_(grain) {}

  // ---- any thread

  /// The item that was given last.
  swarm::WorkItem item() const;

  /// How many microbatches the program does at once.
  void set_grain(std::uint64_t grain) { grain_ = grain; }

  // ---- loop thread

  std::uint64_t grain() const override { return grain_; }

  void work(const swarm::WorkItem& item, Done<train::WorkDone> done) override;

  bool take_back() override { return engine_->take_back(); }

  Duration deserted_for() const override { return engine_->deserted_for(); }

  void knock(Done<Unit> done) override { engine_->knock(std::move(done)); }

  train::SlotValues contribution(std::uint32_t slot) override { return engine_->contribution(slot); }

  void forget_sums() override { engine_->forget_sums(); }

  void apply(train::Update update, Done<Result<Digest>> done) override {
    engine_->apply(std::move(update), std::move(done));
  }

  void freeze(const wire::Record& record, Turn turn, Done<Image> done) override {
    engine_->freeze(record, turn, std::move(done));
  }

  void restore(Image image, Done<Result<Digest>> done) override {
    engine_->restore(std::move(image), std::move(done));
  }

  // owners: as Learner says
  void evaluate(std::shared_ptr<train::WorkMeter> meter, Done<train::Evaluation> done) override {
    engine_->evaluate(std::move(meter), std::move(done));
  }

 private:
  std::unique_ptr<train::EngineLearner> engine_;
  std::atomic<std::uint64_t> grain_;
  mutable std::mutex mutex_;
  swarm::WorkItem item_;  // guarded by mutex_
};

}  // namespace tw::bind
