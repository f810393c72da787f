// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/digest.h"
#include "wire/messages.h"

namespace tw {

/// All records that anybody in a world ever knew, by digest. For checkers: it sees what no peer can see.
class Ledger {
 public:
  /// True when it is new.
  bool add(const Digest& digest, const Record& record);

  const Record* find(const Digest& digest) const;

  /// Whether one of the two branches that lead to these records since they parted carries a minority mark.
  bool marked_fork(Digest a, Digest b) const;

  /// The one with the most rounds (then one of a majority, then the smaller digest); null while there is
  /// none.
  const Record* newest() const;

  int minority_records() const;

  /// Records that are not in the history which ends with this one; null: none are.
  int records_beside(const Record* tip) const;

 private:
  std::map<Digest, Record> records_;
  Digest newest_;  ///< valid once there is one
};

}  // namespace tw
