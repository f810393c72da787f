// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/averaging_wait.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<ModePoint> modes_of(double target, const std::string& peers = "4xT4@gc:us;4xT4@gc:eu",
                                double fragments = 4) {
  NamedWork work;
  work.target_batch_size = target;
  work.parts = fragments;
  const Workload workload{.model = Models::built_in().find("CONV").value()};
  return predict_modes(work, workload, parse_peers(peers).value()).value();
}

/// The target batch of this granularity in sync.
double target_of(double granularity) {
  const Prediction one = modes_of(1000).front().prediction;
  return std::ceil(granularity * one.comm_s.value * one.local_sps.value);
}

TEST(Modes, wait_for_averaging_or_hide_it_at_the_target_batch) {
  const auto points = modes_of(target_of(0.5));
  ASSERT_EQ(points.size(), 8U);
  EXPECT_NEAR(points[0].waits(), 2.0 / 3, 0.01);
  EXPECT_NEAR(points[1].waits(), 0.5, 0.01);
  EXPECT_EQ(points[2].prediction.throughput_sps, points[0].prediction.throughput_sps);
  EXPECT_LT(points[3].waits(), points[1].waits() - 0.2) << "a quarter of the bytes";
}

TEST(Modes, end_with_the_least_batches_that_keep_peers_busy) {
  const auto points = modes_of(target_of(0.5));
  for (const std::size_t at : {4U, 6U}) EXPECT_NEAR(points[at].waits(), 0.05, 1e-3) << points[at].mode;
  for (const std::size_t at : {5U, 7U}) EXPECT_NEAR(points[at].waits(), 0, 1e-3) << points[at].mode;
  EXPECT_NEAR(points[4].round_samples / points[5].round_samples, 19 / kHidden, 0.1);
  for (const ModePoint& point : {points[5], points[7]})
    EXPECT_NEAR(point.prediction.calc_s.value / point.prediction.comm_s.value, kHidden, 5e-3)
        << "as a leader chooses the batch";
  for (const ModePoint& point : modes_of(target_of(50))) EXPECT_EQ(point.round_samples, target_of(50));
}

TEST(Modes, that_stream_send_a_fragment_a_round) {
  const auto four = modes_of(target_of(0.5)), one = modes_of(target_of(0.5), "4xT4@gc:us;4xT4@gc:eu", 1);
  EXPECT_EQ(one[3].prediction.throughput_sps, one[1].prediction.throughput_sps) << "as delayed";
  EXPECT_EQ(four[1].prediction.throughput_sps, one[1].prediction.throughput_sps);
  EXPECT_GT(one[7].round_samples, 1.4 * four[7].round_samples);
}

TEST(Modes, are_answered_with_what_is_lost_and_gained) {
  EXPECT_THAT(mode_answer(modes_of(target_of(0.2))),
              StartsWith("sync would wait 83 % of the time, delayed 80 %; streaming with "));
  EXPECT_EQ(mode_answer(modes_of(target_of(2))),
            "sync would wait 33 % of the time; delayed hides all of it: 1.5 times the samples/s.");
  EXPECT_EQ(mode_answer(modes_of(target_of(21))),
            "sync waits 5 % of the time; no other choice gains more than 5 %.");
  EXPECT_EQ(mode_answer(modes_of(64, "1xT4@gc:us")),
            "sync waits 0 % of the time; no other choice gains more than 5 %.");
}

TEST(Modes, stand_in_text_and_json_with_the_answer) {
  const auto points = modes_of(target_of(2));
  EXPECT_THAT(to_text(points), HasSubstr("\n" + mode_answer(points) + "\n"));
  EXPECT_THAT(to_json(points), HasSubstr("\"answer\": \"" + mode_answer(points)));
}

TEST(Modes, of_another_pattern_are_refused) {
  const NamedWork work;
  const Workload workload{.model = Models::built_in().find("CONV").value(), .pattern = Pattern::hivemind};
  EXPECT_EQ(predict_modes(work, workload, parse_peers("2xT4@gc:us").value()).error().message,
            "pattern hivemind has no modes; expected tradewind or tradewind-sites");
}

}  // namespace
}  // namespace tw::plan
