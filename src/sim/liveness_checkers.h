// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "sim/checker.h"
#include "sim/ledger.h"

namespace tw {

/// L1: with faults over and a majority connected the run comes to its end (the world ends after the time it
/// may take). Who was no member any more when the others came to the end is left behind rightly: nobody is
/// there to answer it.
class RunEnds final : public Checker {
 public:
  explicit RunEnds(const Ledger& ledger) : Checker("L1"), ledger_(ledger) {}

  void on_end(std::span<const Survivor> survivors) override;

 private:
  const Ledger& ledger_;
};

/// No session gives up, unless it came too late: the run is over, and it is no member.
class NobodyFails final : public Checker {
 public:
  explicit NobodyFails(const Ledger& ledger) : Checker("failure"), ledger_(ledger) {}

  void on_look(const Survivor& survivor) override;

 private:
  const Ledger& ledger_;
};

/// L3: who waits for more than 5 s says for whom.
class WaitsAreNamed final : public Checker {
 public:
  WaitsAreNamed() : Checker("L3") {}

  void on_look(const Survivor& survivor) override;

 private:
  std::set<PeerId> told_;
};

}  // namespace tw
