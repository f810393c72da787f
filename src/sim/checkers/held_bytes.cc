// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/held_bytes.h"

#include <algorithm>

#include "average/averager.h"
#include "average/custody.h"
#include "swarm/swarm.h"
#include "sync/donor.h"
#include "sync/fetch.h"

namespace tw::sim {
namespace {

constexpr std::uint64_t kPlace = sizeof(Blob) + sizeof(Digest);  // of one piece, beside its bytes
constexpr std::uint64_t kImages = 2;

/// Members of a record, and its contributions of at least one microbatch each.
std::uint64_t record_bytes(const HeldSizes& s) {
  return s.peers * (sizeof(wire::Member) + wire::kMostAddressBytes + wire::kMostSiteBytes) +
         s.microbatches * (sizeof(wire::Contribution) + sizeof(Range));
}

/// Each sender may add early pieces, one site-local sum and one mean. A plan needs at most one contribution
/// for each microbatch. This peer holds its site-local sum, the mean of the present set and the previous one.
std::uint64_t reduction_bytes(const HeldSizes& s) {
  const std::uint64_t vector = s.vector_bytes + s.segments * sizeof(Blob);
  const std::uint64_t asked = std::min<std::uint64_t>(s.microbatches, s.peers * wire::kMostSlots);
  return (s.peers * (average::Reduction::kEarlyVectors + 2) + asked + 3) * vector;
}

std::uint64_t early_bytes(const HeldSizes& s) {
  return s.peers * average::Averager::kEarlyVectors *
         (s.vector_bytes + s.segments * average::Averager::kEarlyOverhead);
}

std::uint64_t donor_bytes(const HeldSizes& s) {
  const sync::Donor::Options donor;
  return kImages * (s.state_bytes + s.state_chunks * kPlace) +
         donor.max_means * (s.vector_bytes + s.segments * kPlace) +
         s.peers * (sync::Donor::kFollowerBytes + donor.max_chunk_asks * sizeof(wire::ChunkAsk));
}

std::uint64_t fetch_bytes(const HeldSizes& s) {
  const std::uint64_t pieces = std::max(s.state_chunks, s.segments);
  const std::uint64_t offers = (s.peers + 1) * (pieces * sizeof(Digest) + record_bytes(s));
  return std::max(s.state_bytes, s.vector_bytes) + pieces * sizeof(Blob) + offers;
}

/// A state holds a vector in fp32.
std::uint64_t custody_bytes(const HeldSizes& s) { return average::Custody::kMostKept * s.state_bytes; }

}  // namespace

std::uint64_t held_bytes_limit(const HeldSizes& s) {
  return reduction_bytes(s) + early_bytes(s) + custody_bytes(s) + donor_bytes(s) + fetch_bytes(s) +
         s.peers * (swarm::Roster::kEntryBytes + swarm::Swarm::kNotesBytes);
}

}  // namespace tw::sim
