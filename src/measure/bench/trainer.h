// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "codec/codec.h"
#include "measure/bench/board.h"
#include "train/learn/model.h"
#include "train/run/run.h"
#include "train/session/session.h"

namespace tw::measure {

/// A model whose gradient costs one pass over the vector and is known beforehand: the first microbatch of a
/// slot brings the vector of this peer, the others bring nothing. So the mean of a round is the sum of the
/// vectors of its contributions, divided by the samples of the round. With learning rate 1 and no momentum
/// (run_of) the parameters decrease by exactly that; a sample of places over the whole vector is checked, and
/// a difference ends the training. With another optimizer nothing is checked.
class GradientTrainer final : public train::Model, public train::SessionObserver {
 public:
  struct Options {
    PeerId self;
    std::uint64_t parameters = 0;
    train::RunOptions run;   ///< of run_of
    Board* board = nullptr;  ///< each round begins when it is released there; null: at once
    Duration work{};         ///< slept in each microbatch
  };

  explicit GradientTrainer(Options options);

  std::vector<std::uint64_t> tensor_sizes() const override { return {options_.parameters}; }

  void initial_parameters(std::span<float> out) override;
  train::WorkDone work(std::span<const float> parameters, const swarm::WorkItem& item,
                       std::span<float> gradient_sum) override;

  void on_commit(const wire::Record& record) override;

  void on_applied(const wire::Record& record, const Digest&, bool) override { applied_ = record.round; }

 private:
  /// Some of the parameters before the round.
  struct Sample {
    Round round = 0;
    std::vector<float> values;
  };

  void check(Round round, std::span<const float> parameters);
  Sample sample(Round round, std::span<const float> parameters) const;

  Options options_;
  std::vector<float> vector_;  ///< of this peer, one period
  Sample before_;
  std::mutex mutex_;
  std::map<Round, wire::Record> records_;  ///< guarded by mutex_
  std::atomic<Round> applied_ = 0;
};

/// A run of this trainer: one sample a microbatch, and the cheapest possible update.
train::RunOptions run_of(std::uint64_t peers, codec::Codec codec, Round rounds);

}  // namespace tw::measure
