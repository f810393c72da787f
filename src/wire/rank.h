// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "wire/frame.h"
#include "wire/messages.h"

namespace tw {

/// What decides which of two histories goes on where they meet: of the newest record of each.
struct Rank {
  std::uint64_t majority_samples = 0;
  std::uint64_t samples = 0;
  Digest record;
  Round round = 0;  ///< says how far it is; decides nothing

  bool operator==(const Rank&) const = default;
};

inline Rank rank_of(const Record& record, const Digest& digest) {
  return {record.majority_samples, record.samples_total(), digest, record.round};
}

inline Rank rank_of(const Record& record) { return rank_of(record, digest_of(record)); }

inline Rank rank_of(const Heartbeat& told) {
  return {told.majority_samples, told.samples, told.head_record, told.head};
}

/// True for just one of two different records, whoever asks. A record goes before the one that it follows,
/// and before no record at all (a zero digest).
inline bool goes_before(const Rank& one, const Rank& other) {
  if (one.record == Digest{} || other.record == Digest{})
    return other.record == Digest{} && one.record != Digest{};
  return std::tie(one.majority_samples, one.samples, other.record) >
         std::tie(other.majority_samples, other.samples, one.record);
}

}  // namespace tw
