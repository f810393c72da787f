// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>

#include "sim/checkers/checker.h"
#include "sim/checkers/ledger.h"

namespace tw::sim {

/// Over at once: what follows is the peers' own affair. Others go on.
bool is_over_at_once(FaultKind kind);

/// Without a word: at once, and the victim's process or its machine is gone.
bool ends_process(FaultKind kind);

/// Notice of a preemption; 0 for other kinds.
Duration notice_of(FaultKind kind);

/// Until when faults are at work, from what struck.
class FaultWindow {
 public:
  void on_strike(const Strike& strike);
  void on_calm(Instant at);

  /// From when on nothing strikes any more, as far as is known now; kNever while a fault goes on without a
  /// known end.
  Instant quiet_from() const { return until_calm_ ? kNever : std::max(quiet_, machines_); }

 private:
  Instant quiet_{};
  Instant machines_{};  ///< the end of every notice: calm does not save these machines
  bool until_calm_ = false;
};

/// The peers that are there, from looks.
class Census {
 public:
  void on_look(const Survivor& survivor);

  bool lives(PeerId peer, Instant now) const;

  /// When the last one went that is gone now.
  Instant last_gone(Instant now) const;

  /// Whether the record after this one can be decided by a majority of its members.
  bool has_majority_of(const wire::Record& record, Instant now) const;

 private:
  std::map<PeerId, Instant> seen_;  ///< last; still at work then
};

}  // namespace tw::sim
