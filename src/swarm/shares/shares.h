// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "swarm/shares/participant.h"
#include "wire/messages.h"

namespace tw::swarm {

/// Shares of all segments for the participants that may reduce, by bandwidth (best_split of
/// swarm/shares/bound.h), in whole segments; equal ones when no bandwidth is known. `before` stays if
/// its owners are the same and new shares would save less than 5 % of the time.
std::vector<wire::Share> weighted_shares(std::uint64_t segments, const std::vector<Participant>& participants,
                                         const std::vector<wire::Share>& before = {});

/// The shares of `before`, with these segments divided among the participants that may reduce, in the
/// proportion of the weighted shares of a new vector; the other segments stay.
std::vector<wire::Share> moved(const std::vector<wire::Share>& before, const RangeSet& segments,
                               const std::vector<Participant>& participants);

/// The same for all segments of owners that may reduce no more.
std::vector<wire::Share> reown(const std::vector<wire::Share>& before,
                               const std::vector<Participant>& participants);

/// Equal shares, as when no bandwidth is known.
std::vector<wire::Share> equal_shares(std::uint64_t segments, const std::vector<PeerId>& owners);
std::vector<wire::Share> reown(const std::vector<wire::Share>& before, const std::vector<PeerId>& owners);

/// Lower bound in seconds of averaging a vector of this encoded size with these shares, by the known
/// bandwidths; 0 when none is known.
double seconds_of(const std::vector<wire::Share>& shares, std::uint64_t bytes,
                  const std::vector<Participant>& participants);

/// Shares from parts of the vector whose sum is 1, in whole segments; rounding gives no owner more than is
/// left.
std::vector<wire::Share> shares_of(std::uint64_t segments, const std::vector<Participant>& participants,
                                   const std::vector<double>& parts);

/// Adds a share at the end, to the last one if it is of the same kind.
void append(std::vector<wire::Share>& shares, const wire::Share& share);

/// The shares follow each other from 0 to `segments` without gap or overlap.
bool covers(const std::vector<wire::Share>& shares, std::uint64_t segments);

}  // namespace tw::swarm
