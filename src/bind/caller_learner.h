// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "bind/caller_model.h"
#include "train/learn/engine_learner.h"

namespace tw::bind {

/// Results that the program hands in for an order, only during tw_done.
struct HandIn {
  std::span<const tw_tensor> gradients;
  double weight = 0;
  train::WorkDone done;
  std::size_t threads = 1;
};

/// The program as a model: its tensors, its first parameters, and the results that it hands in.
class CallerWork final : public train::Model {
 public:
  CallerWork(std::vector<std::uint64_t> tensor_sizes, std::vector<float> initial, Callbacks callbacks)
      : tensor_sizes_(std::move(tensor_sizes)), initial_(std::move(initial)), callbacks_(callbacks) {}

  /// The program's thread, before the job of its gradient runs.
  void hand_in(const HandIn& hand_in) { hand_in_ = hand_in; }

  std::vector<std::uint64_t> tensor_sizes() const override { return tensor_sizes_; }

  void initial_parameters(std::span<float> out) override;
  train::WorkDone work(std::span<const float> parameters, const swarm::WorkItem& item,
                       std::span<float> gradient_sum) override;

  bool collects() const override { return callbacks_.has_contribution(); }

  void collect(Round round, std::span<float> sum) override { callbacks_.contribution(round, sum); }

 private:
  std::vector<std::uint64_t> tensor_sizes_;
  std::vector<float> initial_;
  Callbacks callbacks_;
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

  Duration deserted_for() const override { return has_company_ ? engine_->deserted_for() : Duration{}; }

  void set_company(bool is_here) override { has_company_ = is_here; }

  void knock(Done<Unit> done) override { engine_->knock(std::move(done)); }

  train::SlotValues contribution(Round round, std::uint32_t slot) override {
    return engine_->contribution(round, slot);
  }

  bool has_uncollected(Round round) const override { return engine_->has_uncollected(round); }

  void collect(Round round, Done<Unit> done) override { engine_->collect(round, std::move(done)); }

  void forget_sums(Round round) override { engine_->forget_sums(round); }

  void move_on(Done<Unit> done) override { engine_->move_on(std::move(done)); }

  bool has_moved_on() const override { return engine_->has_moved_on(); }

  Digest settle(const wire::Record& anew) override { return engine_->settle(anew); }

  void apply(train::Update update, Done<Result<Digest>> done) override {
    engine_->apply(std::move(update), std::move(done));
  }

  void freeze(const wire::Record& record, Turn turn, Done<Image> done) override {
    engine_->freeze(record, turn, std::move(done));
  }

  void restore(Image image, Done<Result<Digest>> done) override {
    engine_->restore(std::move(image), std::move(done));
  }

 private:
  std::unique_ptr<train::EngineLearner> engine_;
  std::atomic<std::uint64_t> grain_;
  bool has_company_ = true;
  mutable std::mutex mutex_;
  swarm::WorkItem item_;  // guarded by mutex_
};

}  // namespace tw::bind
