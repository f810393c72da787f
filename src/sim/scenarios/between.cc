// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/between.h"

#include <cmath>

namespace tw::sim {

double Between::draw(Prng& random) const {
  const double where = random.uniform();
  if (least <= 0) return least + (most - least) * where;
  return least * std::pow(most / least, where);
}

}  // namespace tw::sim
