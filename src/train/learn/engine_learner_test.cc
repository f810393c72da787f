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
class Ones final : public Trainer {
 public:
  std::uint64_t parameter_count() const override { return kWeights.length; }

  std::vector<std::uint64_t> tensor_sizes() const override { return {kWeights.length}; }

  void initial_parameters(std::span<float> out) override { std::ranges::fill(out, 0.0F); }

  void lead(bool leads) override { led.push_back(leads); }

  double accumulate(std::span<const float>, SampleSpan samples, std::span<float> sum) override {
    for (float& value : sum) value += static_cast<float>(samples.count);
    return 2.0 * static_cast<double>(samples.count);
  }

  Evaluation evaluate(std::span<const float>, WorkMeter& meter) override {
    meter.begin(7);
    return {.loss = 3};
  }

  std::vector<bool> led;  ///< by item
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

/// Contributes nothing but zeros, and lets the mean be.
class Idle final : public train::Mode {
 public:
  WorkDone work(TrainState&, const swarm::WorkItem&, GradientSlot&) override { return {}; }

  SlotValues contribution(TrainState&, std::uint32_t) override { return {{zeros, {}}, {}}; }

  Result<Digest> apply(TrainState&, const average::Geometry&, const Update& update) override {
    return Digest{update.record.round, 0};
  }

  std::vector<float> zeros = std::vector<float>(kWeights.length);
};

class EngineLearnerTest : public ::testing::Test {
 protected:
  // owners: as EngineLearner::Options says
  EngineLearner learner_with(std::shared_ptr<train::Mode> mode) {
    RunOptions run;
    run.optimizer.kind = OptimizerKind::sgd;
    run.codec = codec::Codec::fp32;
    return {trainer,
            {.run = run, .geometry = kWeights, .chunk_bytes = 64, .mode = std::move(mode)},
            compute,
            beside};
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

  Ones trainer;
  Queue compute, beside;
};

TEST_F(EngineLearnerTest, contributes_the_gradient_sum_of_a_round_and_applies_the_mean_in_sync_mode) {
  EngineLearner learner = learner_with(std::make_shared<train::SyncMode>());  // owners: the learner
  initialise(learner);
  const Digest before = parameters_of(learner);
  double loss = 0;
  for (const std::uint64_t first : {0, 4})
    learner.work({1, 0, RangeSet(Range{first / 4, 1}), RangeSet(Range{first, 4})},
                 [&](const WorkDone& did, Duration) { loss += did.loss_sum; });
  compute.run_all();
  EXPECT_EQ(16.0, loss);
  EXPECT_EQ((std::vector<float>(kWeights.length, 8.0F)),
            std::vector<float>(learner.contribution(0).sum.values.begin(),
                               learner.contribution(0).sum.values.end()));
  Digest applied;
  learner.apply(update_of(1, 1),
                [&](const Result<Digest>& parameters, Duration) { applied = parameters.value(); });
  compute.run_all();
  EXPECT_NE(before, applied);
  EXPECT_EQ(applied, parameters_of(learner));
}

TEST_F(EngineLearnerTest, tells_the_trainer_for_each_item_whether_this_peer_leads) {
  EngineLearner learner = learner_with(std::make_shared<train::SyncMode>());  // owners: the learner
  initialise(learner);
  for (const bool leads : {true, false, true}) {
    swarm::WorkItem item{.round = 1, .samples = RangeSet(Range{0, 4})};
    item.leads = leads;
    learner.work(item, [](const WorkDone&, Duration) {});
  }
  compute.run_all();
  EXPECT_EQ(trainer.led, (std::vector<bool>{true, false, true}));
}

TEST_F(EngineLearnerTest, asks_the_mode_what_it_contributes_and_what_a_mean_does) {
  EngineLearner learner = learner_with(std::make_shared<Idle>());  // owners: the learner
  initialise(learner);
  const Digest before = parameters_of(learner);
  EXPECT_EQ(0.0F, learner.contribution(0).sum.values.front());
  Digest told;
  learner.apply(update_of(5, 1),
                [&](const Result<Digest>& parameters, Duration) { told = parameters.value(); });
  compute.run_all();
  EXPECT_EQ((Digest{5, 0}), told);
  EXPECT_EQ(before, parameters_of(learner));
}

TEST_F(EngineLearnerTest, freezes_beside_its_work_unless_an_update_comes_in_between) {
  EngineLearner learner = learner_with(std::make_shared<train::SyncMode>());  // owners: the learner
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
  EngineLearner learner = learner_with(std::make_shared<train::SyncMode>());  // owners: the learner
  initialise(learner);
  Update wrong = update_of(1, 1);
  wrong.missed = true;
  bool refused = false;
  learner.apply(wrong, [&](const Result<Digest>& parameters, Duration) { refused = !parameters.ok(); });
  compute.run_all();
  EXPECT_TRUE(refused);
}

TEST_F(EngineLearnerTest, tells_how_far_an_evaluation_is_and_nothing_of_it_afterwards) {
  EngineLearner learner = learner_with(std::make_shared<train::SyncMode>());  // owners: the learner
  const auto meter = std::make_shared<WorkMeter>();  // owners: the job, and this test
  double loss = 0;
  learner.evaluate(meter, [&](const Evaluation& evaluation, Duration) { loss = evaluation.loss; });
  compute.run_all();
  EXPECT_EQ(3.0, loss);
  EXPECT_EQ(0U, meter->total());
}

}  // namespace
}  // namespace tw::train
