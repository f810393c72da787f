// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/digest.h"
#include "wire/messages.h"
#include "wire/rank.h"

namespace tw::sim {

/// All records that any peer of a world ever knew, by digest. Only for checkers.
class Ledger {
 public:
  /// True when it is new.
  bool add(const Digest& digest, const wire::Record& record);

  const wire::Record* find(const Digest& digest) const;

  /// Whether the history that ends with record b holds record a.
  bool leads_to(const Digest& a, Digest b) const;

  /// Whether one of the two branches that lead to these records has a minority mark after the fork.
  bool marked_fork(Digest a, Digest b) const;

  /// No process of the run lives: what nobody but they knew is lost. The record that ended the run stays.
  void start_over();

  /// The record that ranks before all others (wire/rank.h) since nobody lived; null while there is none.
  const wire::Record* newest() const;

  /// The newest one; when nobody lives any more, that of the history which died last.
  const wire::Record* last_known() const;

  int minority_records() const;

  /// Records that are not in the history which ends with this one; null: none are.
  int records_beside(const wire::Record* tip) const;

 private:
  std::map<Digest, wire::Record> records_;
  wire::Rank newest_;  ///< of no record: there is none
  Digest died_{};      ///< the newest record of the history that died last
};

}  // namespace tw::sim
