// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/trainer.h"

#include <gtest/gtest.h>

#include "wire/limits.h"

namespace tw::measure {
namespace {

constexpr std::uint64_t kParameters = 10'000;
constexpr std::uint64_t kPeers = 2;

/// Two trainers, and the update that a session would make of what they give.
class Rounds : public testing::Test {
 protected:
  void SetUp() override {
    for (GradientTrainer* trainer : {&one_, &two_}) trainer->initial_parameters(parameters_);
  }

  static GradientTrainer::Options options_of(std::uint64_t peer) {
    return {.self = PeerId{peer}, .parameters = kParameters, .run = run_of(kPeers, codec::Codec::fp32, 10)};
  }

  std::vector<float> sum_of(GradientTrainer& trainer, Round round, int microbatches) const {
    std::vector<float> sum(kParameters, 0.0F);
    trainer.on_applied(record_of(round - 1), {}, false);
    for (int i = 0; i < microbatches; ++i) trainer.work(parameters_, {}, sum);
    return sum;
  }

  static wire::Record record_of(Round round) {
    wire::Record record;
    record.round = round;
    return record;
  }

  void average(Round round, const std::vector<std::vector<float>>& sums, const std::vector<PeerId>& peers,
               std::uint32_t slot = 0) {
    const auto batch = static_cast<float>(run_of(kPeers, codec::Codec::fp32, 10).batch.size.value());
    for (const auto& sum : sums)
      for (std::size_t i = 0; i < sum.size(); ++i) parameters_[i] -= sum[i] / batch;
    wire::Record record = record_of(round);
    record.samples = run_of(kPeers, codec::Codec::fp32, 10).batch.size.value();
    for (const PeerId peer : peers) record.contributors.push_back({peer, slot, 4, {}});
    for (GradientTrainer* trainer : {&one_, &two_}) trainer->on_commit(record);
  }

  GradientTrainer one_{options_of(1)};
  GradientTrainer two_{options_of(2)};
  std::vector<float> parameters_ = std::vector<float>(kParameters, 5.0F);
};

TEST_F(Rounds, go_on_while_the_mean_is_the_sum_of_the_contributors_vectors) {
  const auto one = sum_of(one_, 1, 3), two = sum_of(two_, 1, 5);
  EXPECT_NE(one, two);
  EXPECT_EQ(one, sum_of(one_, 1, 1)) << "further microbatches bring nothing";
  average(1, {one, two}, {PeerId{1}, PeerId{2}});
  average(2, {sum_of(one_, 2, 4)}, {PeerId{1}});
  EXPECT_NO_THROW(sum_of(one_, 3, 1));
  EXPECT_NO_THROW(sum_of(two_, 3, 1)) << "has not seen round 2: nothing to compare with";
}

TEST_F(Rounds, end_when_a_contribution_is_missing_or_the_mean_is_another) {
  average(1, {sum_of(one_, 1, 4)}, {PeerId{1}, PeerId{2}});
  EXPECT_THROW(sum_of(one_, 2, 1), std::runtime_error);
  const auto one = sum_of(one_, 2, 4), two = sum_of(two_, 2, 4);
  average(2, {one, two}, {PeerId{1}, PeerId{2}});
  for (float& value : parameters_) value += 0.001F;
  EXPECT_THROW(sum_of(one_, 3, 1), std::runtime_error);
}

TEST_F(Rounds, judge_no_sum_that_was_handed_over) {
  average(1, {sum_of(one_, 1, 4)}, {PeerId{2}}, wire::kLeaseSlots);
  EXPECT_NO_THROW(sum_of(one_, 2, 1)) << "whose it was is in no record";
}

}  // namespace
}  // namespace tw::measure
