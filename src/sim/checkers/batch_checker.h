// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// I14: where the leader chooses target batch sizes, a round has the one that the record before it says, and
/// each record says the one that follows from what it says was measured: the fewest microbatches, counted one
/// by one, whose work is long enough, changed in steps that are neither small nor wide. Elsewhere no record
/// says any.
class ChosenBatches final : public Checker {
 public:
  ChosenBatches(const Rules& rules, const Ledger& ledger) : Checker("I14"), rules_(rules), ledger_(ledger) {}

  void on_commit(const Sighting& sighting) override;

 private:
  std::uint64_t expected_after(const wire::BatchChoice& batch) const;

  Rules rules_;
  const Ledger& ledger_;
  std::set<Digest> seen_;
};

}  // namespace tw::sim
