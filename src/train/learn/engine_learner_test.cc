// SPDX-License-Identifier: Apache-2.0
#include "train/learn/engine_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "average/reduction/mean_digest.h"

namespace tw::train {
namespace {

constexpr average::Geometry kWeights{.length = 4, .segment_length = 4};

/// Every sample has the gradient 1 and the loss 2, whatever the parameters, which begin at 0.
class Ones final : public Model {
 public:
  std::vector<std::uint64_t> tensor_sizes() const override { return {1, kWeights.length - 1}; }

  void initial_parameters(std::span<float> out) override { std::ranges::fill(out, 0.0F); }

  WorkDone work(std::span<const float>, const swarm::WorkItem& item, std::span<float> sum) override {
    const std::uint64_t samples = item.samples.count();
    for (float& value : sum) value += static_cast<float>(samples);
    return {item.microbatches.count(), samples, 2.0 * static_cast<double>(samples)};
  }
};

class Queue final : public world::Executor {
 public:
  void submit(world::Task job) override { jobs.push_back(std::move(job)); }

  void run_all() {
    for (; !jobs.empty(); jobs.pop_front()) {
      jobs.front().run();
      jobs.front().done(std::chrono::seconds(1));
    }
  }

  std::deque<world::Task> jobs;
};

class EngineLearnerTest : public ::testing::Test {
 protected:
  EngineLearner make_learner() {
    RunOptions run;
    run.optimizer.kind = OptimizerKind::sgd;
    run.codec = codec::Codec::fp32;
    run.mode.digest_every = 1;
    return {model, {.run = run, .fragments = kWeights, .chunk_bytes = 64}, compute, beside};
  }

  Digest parameters_of(Learner& learner) {
    Learner::Image frozen;
    learner.freeze({}, Learner::Turn::in_order,
                   [&](const Learner::Image& image, Duration) { frozen = image; });
    compute.run_all();
    return frozen->parameters;
  }

  void initialise(Learner& learner) {
    learner.restore(nullptr,
                    [](const Result<Digest>& parameters, Duration) { EXPECT_TRUE(parameters.ok()); });
    compute.run_all();
  }

  static Update update_of(Round round, float value) {
    std::vector<float> mean(kWeights.length, value);
    std::vector<std::byte> bytes(encoded_bytes(codec::Codec::fp32, mean.size()));
    encode(codec::Codec::fp32, mean, 1.0F, bytes);
    Update update;
    update.record.round = round;
    update.mean = {Blob(std::move(bytes))};
    return update;
  }

  Ones model;
  Queue compute, beside;
};

TEST_F(EngineLearnerTest, contributes_the_gradient_sum_of_a_round_and_applies_the_mean) {
  EngineLearner learner = make_learner();
  initialise(learner);
  const Digest before = parameters_of(learner);
  double loss = 0;
  for (const std::uint64_t first : {0, 4})
    learner.work({1, 0, RangeSet(Range{first / 4, 1}), RangeSet(Range{first, 4})},
                 [&](const WorkDone& did, Duration) { loss += did.loss_sum; });
  compute.run_all();
  EXPECT_EQ(16.0, loss);
  EXPECT_EQ((std::vector<float>(kWeights.length, 8.0F)),
            std::vector<float>(learner.contribution(1, 0).sum.values.begin(),
                               learner.contribution(1, 0).sum.values.end()));
  Digest applied;
  learner.apply(update_of(1, 1),
                [&](const Result<Digest>& parameters, Duration) { applied = parameters.value(); });
  compute.run_all();
  EXPECT_NE(before, applied);
  EXPECT_EQ(applied, parameters_of(learner));
}

TEST_F(EngineLearnerTest, freezes_beside_its_work_unless_an_update_comes_in_between) {
  EngineLearner learner = make_learner();
  initialise(learner);
  int images = 0;
  const auto count = [&](const Learner::Image& image, Duration) { images += image != nullptr ? 1 : 0; };
  learner.freeze({}, Learner::Turn::beside, count);
  beside.run_all();
  EXPECT_EQ(1, images);
  learner.freeze({}, Learner::Turn::beside, count);
  learner.apply(update_of(1, 1), [](const Result<Digest>&, Duration) {});
  compute.run_all();
  beside.run_all();
  EXPECT_EQ(1, images);
}

TEST_F(EngineLearnerTest, tells_a_missed_mean_that_is_not_the_recorded_one) {
  EngineLearner learner = make_learner();
  initialise(learner);
  Update wrong = update_of(1, 1);
  wrong.missed = true;
  bool refused = false;
  learner.apply(wrong, [&](const Result<Digest>& parameters, Duration) { refused = !parameters.ok(); });
  compute.run_all();
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace tw::train
