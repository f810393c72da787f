// SPDX-License-Identifier: Apache-2.0
#include "plan/fit/fit.h"

#include <gtest/gtest.h>

namespace tw::plan {
namespace {

TEST(Fit, a_line_through_points_on_a_line_is_that_line) {
  const LinearFit line = fit_line({{1, 5}, {2, 7}, {4, 11}});
  EXPECT_NEAR(line.at_0, 3, 1e-12);
  EXPECT_NEAR(line.slope, 2, 1e-12);
}

TEST(Fit, interpolation_stays_at_the_ends) {
  const std::vector<Point> points{{0, 1}, {10, 2}, {20, 6}};
  EXPECT_EQ(interpolate(points, -1), 1);
  EXPECT_EQ(interpolate(points, 15), 4);
  EXPECT_EQ(interpolate(points, 10), 2);
  EXPECT_EQ(interpolate(points, 99), 6);
}

TEST(Fit, solving_finds_the_argument_of_rising_and_falling_functions) {
  EXPECT_NEAR(solve([](double x) { return x * x; }, 9, 0, 100), 3, 1e-9);
  EXPECT_NEAR(solve([](double x) { return -x; }, -7, 0, 100), 7, 1e-9);
}

}  // namespace
}  // namespace tw::plan
