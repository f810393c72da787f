// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/prng.h"

namespace tw::sim {

/// A number of a scenario: each run (or peer, or path) draws its own, log-uniformly. One number stands for
/// itself; a range that begins at 0 is drawn uniformly.
struct Between {
  double least = 0;
  double most = 0;

  Between() = default;

  Between(double one) : least(one), most(one) {}  // NOLINT: a number is a range

  Between(double from, double to) : least(from), most(to) {}

  double draw(Prng& random) const;

  bool operator==(const Between&) const = default;
};

}  // namespace tw::sim
