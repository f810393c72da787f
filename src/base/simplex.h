// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace tw {

/// One row of a linear programme: sum of factors[k] * x[k] <= limit, with limit >= 0.
struct Row {
  std::vector<double> factors;
  double limit = 0;
};

/// The point x >= 0 that satisfies all rows and has the largest last coordinate, which the rows must bound.
/// Dense simplex method; each step costs rows * coordinates, and there are about as many steps as rows.
std::vector<double> with_largest_last(const std::vector<Row>& rows);

}  // namespace tw
