// SPDX-License-Identifier: Apache-2.0
#include "plan/fit/fit.h"

#include <algorithm>

#include "base/check.h"

namespace tw::plan {

LinearFit fit_line(const std::vector<Point>& points) {
  const auto count = static_cast<double>(points.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const Point& point : points) {
    mean_x += point.x / count;
    mean_y += point.y / count;
  }
  double xx = 0;
  double xy = 0;
  for (const Point& point : points) {
    xx += (point.x - mean_x) * (point.x - mean_x);
    xy += (point.x - mean_x) * (point.y - mean_y);
  }
  TW_CHECK(xx > 0);
  const double slope = xy / xx;
  return {.at_0 = mean_y - slope * mean_x, .slope = slope};
}

double interpolate(const std::vector<Point>& points, double x) {
  TW_CHECK(!points.empty());
  const auto after = std::find_if(points.begin(), points.end(), [&](const Point& one) { return one.x >= x; });
  if (after == points.end()) return points.back().y;
  if (after == points.begin()) return after->y;
  const auto before = std::prev(after);
  return before->y + (after->y - before->y) * (x - before->x) / (after->x - before->x);
}

}  // namespace tw::plan
