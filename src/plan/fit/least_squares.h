// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace tw::plan {

using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

/// The point near `start` with the least sum of soft-limited squares, 2 (sqrt(1 + (r / limit)^2) - 1), of the
/// residuals. Levenberg-Marquardt with difference quotients, for a few smooth coordinates of about size 1.
std::vector<double> least_squares(std::vector<double> start, const Residuals& residuals, double limit);

}  // namespace tw::plan
