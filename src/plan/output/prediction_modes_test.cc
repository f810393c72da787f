// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::plan {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<ModePoint> modes_of(double target, const std::string& peers = "4xT4@gc:us;4xT4@gc:eu") {
  const Workload work{.model = Models::built_in().find("CONV").value(), .target_batch_size = target};
  return predict_modes(work, parse_peers(peers).value()).value();
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
  EXPECT_NEAR(points[4].round_samples / points[5].round_samples, 19, 0.1);
  for (const ModePoint& point : modes_of(target_of(50))) EXPECT_EQ(point.round_samples, target_of(50));
}

TEST(Modes, are_chosen_by_granularity_with_the_reason) {
  EXPECT_THAT(mode_answer(modes_of(target_of(0.41))),
              StartsWith("sync would wait 71 % of the time: take streaming with "));
  EXPECT_EQ(mode_answer(modes_of(target_of(2))),
            "sync would wait 33 % of the time: take delayed, which waits 0 %.");
  EXPECT_EQ(mode_answer(modes_of(target_of(20))), "sync would wait 5 % of the time: take it.");
  EXPECT_EQ(mode_answer(modes_of(64, "1xT4@gc:us")), "sync would wait 0 % of the time: take it.");
}

TEST(Modes, stand_in_text_and_json_with_the_answer) {
  const auto points = modes_of(target_of(2));
  EXPECT_THAT(to_text(points), HasSubstr("\n" + mode_answer(points) + "\n"));
  EXPECT_THAT(to_json(points), HasSubstr("\"answer\": \"" + mode_answer(points)));
}

TEST(Modes, of_another_pattern_are_refused) {
  const Workload work{.model = Models::built_in().find("CONV").value(),
                      .target_batch_size = 64,
                      .pattern = Pattern::hivemind};
  EXPECT_EQ(predict_modes(work, parse_peers("2xT4@gc:us").value()).error().message,
            "pattern hivemind has no modes; expected tradewind or tradewind-sites");
}

}  // namespace
}  // namespace tw::plan
