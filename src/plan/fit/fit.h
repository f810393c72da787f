// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace tw::plan {

struct Point {
  double x = 0;
  double y = 0;
};

struct LinearFit {
  double at_0 = 0;
  double slope = 0;

  double at(double x) const { return at_0 + slope * x; }
};

/// Least squares; at least two different x.
LinearFit fit_line(const std::vector<Point>& points);

/// Linear between points, which rise in x; constant outside them.
double interpolate(const std::vector<Point>& points, double x);

/// The x in [least, most] at which a monotone function is nearest to the value.
template <class Function>
double solve(Function function, double value, double least, double most) {
  const bool rising = function(most) > function(least);
  for (int i = 0; i < 100; ++i) {
    const double middle = (least + most) / 2;
    ((function(middle) < value) == rising ? least : most) = middle;
  }
  return (least + most) / 2;
}

}  // namespace tw::plan
