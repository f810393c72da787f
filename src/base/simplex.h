// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace tw {

/// One row of a linear programme: sum of factors[k] * x[k] <= limit, with limit >= 0.
struct Row {
  std::vector<double> factors;
  double limit = 0;
};

/// The point x >= 0 that keeps all rows and has the largest last coordinate, which the rows must bound.
/// Dense simplex method; the work grows with rows * coordinates for each of about as many steps.
std::vector<double> with_largest_last(const std::vector<Row>& rows);

}  // namespace tw
