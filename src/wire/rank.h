// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "wire/frame.h"
#include "wire/messages.h"

namespace tw::wire {

/// Fields of a history's newest record that decide which of two histories goes on where they meet.
struct Rank {
  bool had_company = false;  ///< a lone peer's new history never goes before one that had members
  std::uint64_t majority_samples = 0;
  std::uint64_t samples = 0;
  std::uint32_t restarts = 0;
  Digest record;
  Round round = 0;  ///< how far it is; decides nothing

  bool operator==(const Rank&) const = default;
};

inline Rank rank_of(const Record& record, const Digest& digest) {
  return {record.had_company, record.majority_samples, record.samples_total(), record.restarts, digest,
          record.round};
}

inline Rank rank_of(const Record& record) { return rank_of(record, digest_of(record)); }

inline Rank rank_of(const Heartbeat& told) {
  return {told.had_company, told.majority_samples, told.samples, told.restarts, told.head_record, told.head};
}

/// True for just one of two different records, at every peer. A record goes before the one that it follows,
/// and before no record at all (a zero digest).
inline bool goes_before(const Rank& one, const Rank& other) {
  if (one.record == Digest{} || other.record == Digest{})
    return other.record == Digest{} && one.record != Digest{};
  return std::tie(one.had_company, one.majority_samples, one.samples, one.restarts, other.record) >
         std::tie(other.had_company, other.majority_samples, other.samples, other.restarts, one.record);
}

}  // namespace tw::wire
