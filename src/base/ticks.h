// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// Axes of plots, with ticks at 1, 2 or 5 times a power of ten.
namespace tw {

struct Scale {
  double low = 0, high = 1;  ///< ticks too
  double step = 1;
  std::vector<double> ticks;  ///< rising

  bool operator==(const Scale&) const = default;
};

/// From the tick at or below `low` to the one at or above `high`, with about `most` steps (at least 1).
/// Requires finite numbers.
Scale round_scale(double low, double high, int most);

/// "1,200", "0.25", "2.5 M" from a million on: without an exponent, with as many places as the step has.
/// "inf", "-inf" and "nan" of what is no number.
std::string tick_text(double value, double step);

}  // namespace tw
