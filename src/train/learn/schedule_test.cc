// SPDX-License-Identifier: Apache-2.0
#include "train/learn/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace tw::train {
namespace {

ScheduleOptions schedule(ScheduleKind kind) {
  return {.kind = kind, .learning_rate = 0.002, .warmup_rounds = 10, .total_rounds = 110, .final_share = 0.1};
}

using Points = std::vector<std::pair<Round, double>>;

void expect_points(const ScheduleOptions& options, const Points& points) {
  for (const auto& [round, expected] : points)
    EXPECT_NEAR(learning_rate(options, round), expected, 1e-16) << round;
}

TEST(Schedule, constant_stays_at_the_peak_after_warming_up) {
  expect_points(schedule(ScheduleKind::constant),
                {{1, 0.0002}, {5, 0.001}, {10, 0.002}, {11, 0.002}, {110, 0.002}, {500, 0.002}});
}

TEST(Schedule, linear_falls_to_its_final_share_and_stays_there) {
  expect_points(
      schedule(ScheduleKind::linear),
      {{1, 0.0002}, {5, 0.001}, {10, 0.002}, {11, 0.001982}, {55, 0.00119}, {110, 0.0002}, {500, 0.0002}});
}

TEST(Schedule, cosine_falls_to_its_final_share_and_stays_there) {
  expect_points(schedule(ScheduleKind::cosine), {{1, 0.0002},
                                                 {10, 0.002},
                                                 {11, 0.0019995559043291585},
                                                 {55, 0.0012407910185362079},
                                                 {100, 0.00024404913533436186},
                                                 {109, 0.00020044409567084156},
                                                 {110, 0.0002},
                                                 {500, 0.0002}});
}

TEST(Schedule, cosine_agrees_with_libm_everywhere) {
  const ScheduleOptions options{.kind = ScheduleKind::cosine, .learning_rate = 1, .total_rounds = 10000};
  for (Round round = 0; round <= options.total_rounds; ++round) {
    const double expected = 0.5 * (1 + std::cos(std::numbers::pi * static_cast<double>(round) / 10000));
    ASSERT_NEAR(learning_rate(options, round), expected, 1e-15) << round;
  }
}

TEST(Schedule, rises_while_warming_up_and_never_rises_again) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine}) {
    ScheduleOptions options = schedule(kind);
    options.total_rounds = 3000;
    for (Round round = 1; round <= 10; ++round) {
      ASSERT_GT(learning_rate(options, round), learning_rate(options, round - 1)) << round;
    }
    for (Round round = 11; round <= 3100; ++round) {
      ASSERT_LE(learning_rate(options, round), learning_rate(options, round - 1)) << round;
      ASSERT_GE(learning_rate(options, round), 0.0002 * (1 - 1e-15)) << round;
    }
  }
}

TEST(Schedule, without_an_end_stays_at_the_peak) {
  expect_points({.kind = ScheduleKind::cosine, .learning_rate = 0.5}, {{1, 0.5}, {100000, 0.5}});
}

}  // namespace
}  // namespace tw::train
