// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "sim/checker.h"

namespace tw {

/// I4: the mean is the reference mean over the recorded contributors, bit for bit (gradients of
/// SyntheticTrainer).
class ExactMean final : public Checker {
 public:
  explicit ExactMean(const Rules& rules) : Checker("I4"), rules_(rules) {}

  void on_commit(const Sighting& sighting) override;

 private:
  Rules rules_;
  std::set<Digest> seen_;
};

}  // namespace tw
