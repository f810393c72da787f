// SPDX-License-Identifier: Apache-2.0
#include "sim/ledger.h"

#include <algorithm>

namespace tw {
namespace {

bool is_newer(const Record& record, const Record& than) {
  return record.round > than.round || (record.round == than.round && !record.minority && than.minority);
}

}  // namespace

bool Ledger::add(const Digest& digest, const Record& record) {
  const Record* before = newest();
  const bool tie = before != nullptr && !is_newer(*before, record) && digest < newest_;
  if (before == nullptr || is_newer(record, *before) || tie) newest_ = digest;
  return records_.emplace(digest, record).second;
}

const Record* Ledger::find(const Digest& digest) const {
  const auto found = records_.find(digest);
  return found == records_.end() ? nullptr : &found->second;
}

bool Ledger::marked_fork(Digest a, Digest b) const {
  while (a != b) {
    const Record* first = find(a);
    const Record* second = find(b);
    if (first == nullptr && second == nullptr) return false;
    const bool step_first = second == nullptr || (first != nullptr && first->round >= second->round);
    const Record* later = step_first ? first : second;
    if (later->minority) return true;
    (step_first ? a : b) = later->parent;
  }
  return false;
}

const Record* Ledger::newest() const { return find(newest_); }

int Ledger::minority_records() const {
  return static_cast<int>(std::count_if(records_.begin(), records_.end(),
                                        [](const auto& entry) { return entry.second.minority; }));
}

int Ledger::records_beside(const Record* tip) const {
  std::size_t in_history = 0;
  for (const Record* record = tip; record != nullptr; record = find(record->parent)) ++in_history;
  return static_cast<int>(records_.size() - in_history);
}

}  // namespace tw
