// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// Until when faults are active, computed from strikes.
class FaultWindow {
 public:
  void on_strike(const Strike& strike);
  void on_calm(Instant at);

  /// Earliest time without active faults, as known now; kNever while a fault lasts without a known end.
  Instant quiet_from() const { return until_calm_ ? kNever : std::max(quiet_, machines_); }

 private:
  Instant quiet_{};
  Instant machines_{};  ///< the end of every notice: calm does not save these machines
  bool until_calm_ = false;
};

/// The peers that are present, from looks.
class Census {
 public:
  void on_look(const Survivor& survivor);

  bool lives(PeerId peer, Instant now) const;

  /// When the last of the missing peers was lost.
  Instant last_gone(Instant now) const;

  /// Whether the record after this one can be decided by a majority of its members.
  bool has_majority_of(const wire::Record& record, Instant now) const;

 private:
  std::map<PeerId, Instant> seen_;  ///< last time seen at work
};

}  // namespace tw::sim
