// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/history.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/quorum.h"
#include "wire/frame.h"

namespace tw::swarm {

wire::Rank History::rank() const {
  TW_CHECK(head_.has_value());
  return rank_of(*head_, digest_);
}

bool History::continues(const wire::Record& record) const {
  return is_next(record.round) && record.parent == digest_;
}

// The length of the other history does not count: a peer that was cut off may have made more rounds than all
// others.
History::News History::judge(const wire::Record& record, const std::optional<wire::Record>& expected) const {
  if (!goes_before(rank_of(record), rank())) return News::old;
  return continues(record) && expected && record == *expected ? News::next : News::other;
}

void History::fresh(const Digest& parameters) {
  TW_CHECK(!head_);
  parameters_ = parameters;
}

bool History::begin(const wire::Record& record) {
  const Digest digest = digest_of(record);
  const bool again = head_ && digest == digest_;
  enter(record, digest);
  return again;
}

void History::extend(const wire::Record& record) {
  TW_CHECK(continues(record));
  enter(record, digest_of(record));
}

void History::applied(Round round, const Digest& parameters) {
  TW_CHECK(head_ && head_->round == round);
  parameters_ = parameters;
}

void History::enter(const wire::Record& record, const Digest& digest) {
  head_ = record;
  digest_ = digest;
  if (record.round > 0) parameters_.reset();
  for (const wire::Member& member : record.members) {
    if (names(by_age_, member)) continue;
    std::erase_if(by_age_, [&](const wire::Member& before) { return before.peer == member.peer; });
    by_age_.push_back(member);
  }
}

}  // namespace tw::swarm
