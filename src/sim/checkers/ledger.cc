// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/ledger.h"

#include <algorithm>

namespace tw::sim {

bool Ledger::add(const Digest& digest, const wire::Record& record) {
  const wire::Rank rank = rank_of(record, digest);
  if (goes_before(rank, newest_)) newest_ = rank;
  return records_.emplace(digest, record).second;
}

void Ledger::start_over() {
  const wire::Record* const ended = newest();
  if (ended == nullptr || ended->last) return;
  died_ = newest_.record;
  newest_ = {};
}

const wire::Record* Ledger::find(const Digest& digest) const {
  const auto found = records_.find(digest);
  return found == records_.end() ? nullptr : &found->second;
}

bool Ledger::leads_to(const Digest& a, Digest b) const {
  while (a != b) {
    const wire::Record* record = find(b);
    if (record == nullptr) return false;
    b = record->parent;
  }
  return true;
}

bool Ledger::marked_fork(Digest a, Digest b) const {
  while (a != b) {
    const wire::Record* first = find(a);
    const wire::Record* second = find(b);
    if (first == nullptr && second == nullptr) return false;
    const bool step_first = second == nullptr || (first != nullptr && first->round >= second->round);
    const wire::Record* later = step_first ? first : second;
    if (later->minority) return true;
    (step_first ? a : b) = later->parent;
  }
  return false;
}

const wire::Record* Ledger::newest() const { return find(newest_.record); }

const wire::Record* Ledger::last_known() const { return newest() != nullptr ? newest() : find(died_); }

int Ledger::minority_records() const {
  return static_cast<int>(std::count_if(records_.begin(), records_.end(),
                                        [](const auto& entry) { return entry.second.minority; }));
}

int Ledger::records_beside(const wire::Record* tip) const {
  std::size_t in_history = 0;
  for (const wire::Record* record = tip; record != nullptr; record = find(record->parent)) ++in_history;
  return static_cast<int>(records_.size() - in_history);
}

}  // namespace tw::sim
